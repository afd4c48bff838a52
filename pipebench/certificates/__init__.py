"""Proofs that are checked with whole numbers alone, by code that knows nothing of how they were found."""
