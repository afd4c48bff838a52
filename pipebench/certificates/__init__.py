"""Certificates: what proves that a plan takes its time and fits, and what proves the bound."""
