"""GGUF files: what their headers say of a model."""
