"""Messages that no single pattern can match, read by Python, one module each."""
