"""A module that leaves while it is imported."""

raise SystemExit(4)
