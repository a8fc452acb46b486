"""What a triage keeps between runs: the files it saw and the rows it created from them, in parts that are either complete or absent."""
