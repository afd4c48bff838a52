"""A run that somebody else launched beside a stored row: what was measured, and which part would explain it."""
