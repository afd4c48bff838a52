"""Compare and plan: problems, plans, and what a plan becomes."""
