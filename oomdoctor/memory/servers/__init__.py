"""Servers that reserve a share of the GPU in advance: what their startup checks, and what is left for the cache."""
