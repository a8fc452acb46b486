"""Use cases over many jobs."""
