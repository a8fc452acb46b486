"""A diagnosis in words."""
