"""What an evidence folder shows, as events (rules/observations)."""
