"""What a line says, whatever program prints it: its words, what they mean, and the facts that they state."""
