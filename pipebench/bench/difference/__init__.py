"""What changed between two plans, or between two sets of results."""
