"""A plan as it lies on processes: ranks, the order of their tasks, what crosses between them."""
