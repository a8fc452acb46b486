"""Changes to config files: only the bytes of a value, everything else as it was; what cannot be done safely is said, never guessed."""
