"""A run or a server as the memory model expects it, beside what its log shows."""
