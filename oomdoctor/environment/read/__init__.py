"""Texts that other people's tools print about a machine -> an Environment. Any text gives one; what is not understood is left out."""
