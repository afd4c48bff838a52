"""Cells of papers and stored rows, run again."""
