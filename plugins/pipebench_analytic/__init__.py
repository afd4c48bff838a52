"""The analytic profiler: what operators cost by a roofline, without any device."""
