"""Schedulers: in which order devices run the tasks of a plan."""
