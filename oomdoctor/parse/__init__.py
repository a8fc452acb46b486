"""Windows -> events: signatures from rules/, and a few families of messages that one pattern cannot hold."""
