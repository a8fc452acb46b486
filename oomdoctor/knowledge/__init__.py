"""The knowledge in rules/: strict loading, the compiled pack, lint. The only place that knows where the files lie."""
