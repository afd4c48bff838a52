"""The tables and the figure of PaSE's evaluation (section IV)."""
