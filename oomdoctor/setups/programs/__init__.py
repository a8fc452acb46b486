"""Programs that put a model on a card in their own way."""
