"""Text for terminals: plans, profiles, runs, comparisons and differences."""
