"""What a night is, its conditions, and the history that keeps it."""
