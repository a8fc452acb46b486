"""A machine in words."""
