"""What is wrong with the settings of a run: keys, values and combinations without effect."""
