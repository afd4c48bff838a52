"""Plans that need no search: what every planner has to beat."""
