"""The order of a plan's tasks: the suite chooses it among all schedulers that take the plan."""
