"""Programs that put a model on a GPU in their own way."""
