"""The machine, its cards and its interpreters -> an Environment. Nothing here raises: what cannot be read becomes a Gap."""
