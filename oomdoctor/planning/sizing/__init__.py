"""Estimates in addition to the requested one: assumptions taken the other way, and every combination of two sizes."""
