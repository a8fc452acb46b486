"""Configs: from files, command lines and what a log printed of them to the settings of a run, and what is wrong with them."""
