"""What was recorded during a run, alongside its log."""
