"""What a triage tells, as texts for people."""
