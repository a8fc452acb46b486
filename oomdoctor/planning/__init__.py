"""What to change so that a run fits its cards, the gentlest change first."""
