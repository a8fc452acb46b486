"""Logs outside of named folders: object stores and lists of paths."""
