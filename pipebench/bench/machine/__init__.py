"""The machine on which the suite runs: what it is, and the limits of memory and time that hold there."""
