"""From what is said of a run (a line of JSON, a config, options, a log) to the setup that the memory model asks for."""
