"""The config.json of a model on a hub, read into the shape of the model."""
