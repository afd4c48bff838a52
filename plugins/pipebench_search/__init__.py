"""The planner `search`: local search over plans, scored by the suite's schedulers and simulator."""
