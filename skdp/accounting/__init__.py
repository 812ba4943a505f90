"""What was promised: guarantees as values that can be read, stored and compared."""
