"""Commands for runs that are watched or recorded."""
