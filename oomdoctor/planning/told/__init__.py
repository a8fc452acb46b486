"""Runs that someone describes in words."""
