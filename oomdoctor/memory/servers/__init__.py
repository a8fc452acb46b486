"""Servers that take a share of the card in advance: what their start checks, and what is left for the cache."""
