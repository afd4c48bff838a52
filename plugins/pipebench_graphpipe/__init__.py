"""GraphPipe: stages that keep a model's branches side by side, by series-parallel decomposition and DP."""
