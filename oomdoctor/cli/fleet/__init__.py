"""The commands over many jobs."""
