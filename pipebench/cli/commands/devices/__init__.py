"""Runs on real devices beside what was predicted of them."""
