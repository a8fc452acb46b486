"""A command that runs as it would without us: how it is started, waited for and ended, and its signals."""
