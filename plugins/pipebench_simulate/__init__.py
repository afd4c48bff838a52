"""The suite's simulator as an executor."""
