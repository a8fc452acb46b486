"""What a triage keeps between runs: the files that it saw and the rows that it made of them, in parts that are whole or not there."""
