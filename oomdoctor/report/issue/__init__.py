"""A diagnosis as an issue to file, a filled-in bug form, or an answer."""
