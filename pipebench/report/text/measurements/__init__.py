"""Runs that were measured, and what was predicted of them, as people read them."""
