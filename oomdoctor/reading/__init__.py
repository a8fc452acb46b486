"""What a line says, whatever program printed it: its words, their meanings, and the facts they state."""
