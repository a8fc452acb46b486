"""What must not leave: secrets, the names of people and of machines; each becomes a numbered placeholder."""
