"""Profiles as files: those that ship, foreign formats read and written."""
