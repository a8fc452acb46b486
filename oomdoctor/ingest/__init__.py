"""Bytes -> windows: one multi-pattern pass over raw bytes finds the few places that matter; only these are decoded."""
