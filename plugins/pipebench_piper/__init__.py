"""Piper: downsets, data and tensor parallelism and recomputation, in-flight memory."""
