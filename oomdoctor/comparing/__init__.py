"""The memory-relevant changes between two runs or machines, according to rules/changes."""
