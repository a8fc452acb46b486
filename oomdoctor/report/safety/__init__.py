"""What leaves the program is harmless and holds no secrets."""
