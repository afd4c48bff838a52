"""Tables and timelines for people."""
