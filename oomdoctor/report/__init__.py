"""From a diagnosis to something a person reads: words first (`compose`), then secrets out (`redact`), then a format."""
