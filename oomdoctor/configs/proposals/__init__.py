"""What to change in config files for a fix, an issue or a plan, chosen and applied one after the other."""
