"""The experiments of the paper's section IV, run again."""
