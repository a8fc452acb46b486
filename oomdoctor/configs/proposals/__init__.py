"""What to change in config files for a fix, a complaint or a plan, chosen and applied one after the other."""
