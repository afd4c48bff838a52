"""The shared cost model: what a plan costs in integer nanoseconds and bytes. No planner owns it."""
