"""Trials: which planner on which problem, how long its search took, what its plan is worth."""
