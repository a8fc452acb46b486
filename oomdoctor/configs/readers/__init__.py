"""Config files in each format -> settings with their places. Nothing is run or constructed."""
