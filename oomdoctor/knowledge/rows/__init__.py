"""Short rows of rule files, spelt out as the records that they stand for."""
