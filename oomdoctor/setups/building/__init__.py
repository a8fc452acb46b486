"""The parts of a setup: how a run is distributed, what is trained in a model, and what had to be assumed."""
