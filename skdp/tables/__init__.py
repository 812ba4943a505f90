"""Released class tables: plain differential privacy from ranges and categories alone."""
