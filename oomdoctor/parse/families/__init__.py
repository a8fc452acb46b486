"""Messages that one pattern cannot hold, read by Python: a module each."""
