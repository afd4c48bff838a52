"""Planners that are programs or files of their own."""
