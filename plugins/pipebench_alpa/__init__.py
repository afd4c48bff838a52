"""Alpa: the inter-operator pass over submeshes."""
