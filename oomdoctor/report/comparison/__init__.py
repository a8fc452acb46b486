"""What changed between two runs or machines, in words."""
