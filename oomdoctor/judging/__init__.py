"""From what logs say to one verdict: which failure came first, what only followed, what the run survived, and how sure that is."""
