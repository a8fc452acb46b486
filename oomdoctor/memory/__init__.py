"""From the description of a run to the memory it uses: arithmetic over frozen data, nothing is read or printed here."""
