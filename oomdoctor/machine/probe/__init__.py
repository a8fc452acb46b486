"""Work in another process: the user's interpreter asked about torch, and libraries that may crash or hang."""
