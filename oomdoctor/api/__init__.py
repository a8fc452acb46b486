"""The use cases, one a file: what the library offers and what the commands call."""
