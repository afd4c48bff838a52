"""MadPipe: memory-aware dynamic programming for asynchronous pipelines (hal-03025305)."""
