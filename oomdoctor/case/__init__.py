"""The vocabulary: frozen dataclasses that every layer shares, from a line of evidence to a diagnosis."""
