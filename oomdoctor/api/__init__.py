"""Use cases: what the library offers and every command calls, one a file."""
