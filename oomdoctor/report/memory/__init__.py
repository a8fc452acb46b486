"""Estimates and plans in words."""
