"""What is released as a function on a box."""
