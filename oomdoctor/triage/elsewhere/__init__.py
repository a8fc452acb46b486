"""Logs that do not lie in a folder that is named: object stores, and lists of paths."""
