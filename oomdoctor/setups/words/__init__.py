"""Runs as someone describes them in words."""
