"""Operators and links, measured on this machine."""
