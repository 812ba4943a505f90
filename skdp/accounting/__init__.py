"""What was promised in all: the law of the privacy loss, and its composition."""
