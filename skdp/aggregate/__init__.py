"""Sample and aggregate: fits to blocks of the records, and the average of what they predict."""
