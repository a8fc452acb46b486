"""The handbook: its pages by name, by message and by words."""
