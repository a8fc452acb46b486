"""Edits of config files: only the bytes of a value move; what cannot be done safely is said, never guessed."""
