"""Planners, plans and results side by side, as people read them."""
