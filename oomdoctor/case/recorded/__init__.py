"""What was recorded while a run went on, beside its log."""
