"""One process of a run: its tasks, its messages, and whether its gradients are right."""
