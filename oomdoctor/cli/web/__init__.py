"""The page in a browser of this machine."""
