"""Checks of planners: what they say of themselves against what they do."""
