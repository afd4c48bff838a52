"""Processes are started, watched and ended, on one machine or many."""
