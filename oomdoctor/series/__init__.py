"""Memory over time, as monitors write it: which shape it has, and what that says of a run."""
