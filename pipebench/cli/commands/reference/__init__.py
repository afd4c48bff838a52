"""What there is and what the words mean."""
