"""The tables of rules/tables as typed rows, looked up by the names that people write."""
