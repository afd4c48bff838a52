"""What a history says: events, where each series stands, what was acknowledged."""
