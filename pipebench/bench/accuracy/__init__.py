"""Predictions held against training iterations that others measured: runs in, errors out."""
