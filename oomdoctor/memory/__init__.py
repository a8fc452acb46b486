"""From what a run is to the memory that it takes: arithmetic over frozen data, nothing is read or printed here."""
