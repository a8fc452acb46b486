"""Estimates beside the one that was asked for: what was assumed taken otherwise, and every combination of two sizes."""
