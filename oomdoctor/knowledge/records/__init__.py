"""The shape of every kind of rule file, key by key."""
