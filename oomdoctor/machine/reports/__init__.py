"""Texts that other tools print about a machine -> an Environment. Any text gives one; what is not understood is left out."""
