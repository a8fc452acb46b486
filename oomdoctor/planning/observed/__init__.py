"""A run or a server as the memory model expects it, compared with what its log shows."""
