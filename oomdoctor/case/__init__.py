"""The vocabulary: frozen structs that every layer shares, from a line of evidence to a diagnosis."""
