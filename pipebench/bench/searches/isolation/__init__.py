"""Searches in child processes of their own, under limits that the parent keeps."""
