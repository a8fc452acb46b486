"""The command line: one file per command, each turns options into values, calls one function, and renders."""
