"""Benchmarking suite for pipeline-parallelism planners."""

__version__ = "0.2.0"
