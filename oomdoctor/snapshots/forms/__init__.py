"""The files that memory of a run comes in: what one is, its bytes tell, not its name."""
