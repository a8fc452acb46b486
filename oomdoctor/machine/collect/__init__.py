"""What this machine is, read from its files and libraries, one subject a module."""
