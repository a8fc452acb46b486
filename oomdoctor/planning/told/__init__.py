"""Runs that somebody describes in words."""
