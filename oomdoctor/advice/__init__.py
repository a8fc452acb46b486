"""Findings -> what to do about each: fixes with their values, in the order in which to try them."""
