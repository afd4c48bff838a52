"""The integer chain of layers: what contiguous planners cut, its exact optimum, and 1F1B* on it."""
