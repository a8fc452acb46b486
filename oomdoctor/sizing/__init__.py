"""From what people say of a run (a line of JSON, a config, options) to the setup that the arithmetic needs."""
