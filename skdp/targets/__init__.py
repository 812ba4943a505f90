"""What is released: functions from a dataset to a vector, and the way back."""
