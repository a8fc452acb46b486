"""From a description of a run (a line of JSON, a config, options, a log) to the setup that the memory model needs."""
