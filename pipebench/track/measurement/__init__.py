"""A night is measured: planners in turns with a calibration, benchmarks as pytest-benchmark wrote them."""
