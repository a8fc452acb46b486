"""The use cases, one per file: what the library offers and what the commands call."""
