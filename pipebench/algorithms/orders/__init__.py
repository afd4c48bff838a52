"""Orders and patterns of the tasks of a plan, for any placement of its stages."""
