"""Samples of the run from outside: processes, host, control group, cards."""
