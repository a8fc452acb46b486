"""Two runs or machines -> what changed between them that matters for memory, by the rules of rules/changes."""
