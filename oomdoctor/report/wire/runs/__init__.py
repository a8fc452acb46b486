"""JSON of what was recorded of a run."""
