"""Kernels that several planners share."""
