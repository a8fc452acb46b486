"""From what logs say to one verdict: which failure came first, what followed from it, what the run survived, and how certain that is."""
