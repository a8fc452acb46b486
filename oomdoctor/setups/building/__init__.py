"""The parts of a setup: how a run is spread, what of a model is trained, and what had to be assumed."""
