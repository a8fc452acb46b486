"""Windows -> events: signatures from rules/, and a few families of messages that no single pattern can match."""
