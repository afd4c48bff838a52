"""Profiles, and the schemas of documents."""
