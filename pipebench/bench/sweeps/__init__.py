"""Many trials: what is still to run, where it runs, in which order."""
