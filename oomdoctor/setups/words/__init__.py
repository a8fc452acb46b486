"""Runs as somebody describes them in words."""
