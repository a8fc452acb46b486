"""The vocabulary: frozen structs shared by all layers, from a line of evidence to a diagnosis."""
