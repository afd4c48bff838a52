"""PipeDream: bottleneck-optimal stages with replicas along a linear order of the operators."""
