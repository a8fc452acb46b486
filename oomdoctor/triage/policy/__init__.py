"""Results that others act on: whether to restart a job, and which groups are new."""
