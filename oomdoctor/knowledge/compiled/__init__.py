"""A pack as bytes: what its lines hold, and how they are made from rule files."""
