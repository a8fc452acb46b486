"""What to change so that a run fits on its GPUs, the gentlest change first."""
