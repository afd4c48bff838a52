"""Checks of executors: what ran, in which order, by which clock; and an end whatever happens."""
