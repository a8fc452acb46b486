"""Tables of estimates as JSON."""
