"""The planner `local-search`: local search over plans, scored by the suite's schedulers and simulator."""
