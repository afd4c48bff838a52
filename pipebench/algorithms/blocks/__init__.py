"""Operators joined to blocks: which, what a block costs, and the acyclic graph of them."""
