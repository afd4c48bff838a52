"""When is a series slower than it was? The tests for steps and drifts, on ratios alone."""
