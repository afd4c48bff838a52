"""A bound from groups of devices: each holds operators as wholes, within time and memory."""
