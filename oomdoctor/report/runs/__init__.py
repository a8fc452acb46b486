"""What was recorded of a run, as a document."""
