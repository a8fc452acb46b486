"""Use cases that estimate many runs at once."""
