"""Packages that a plugin's module must not import: they belong behind `load`, where work begins."""

HEAVY = frozenset(
    {
        "numpy",
        "scipy",
        "pandas",
        "networkx",
        "pulp",
        "highspy",
        "ortools",
        "cvxpy",
        "gurobipy",
        "numba",
        "jax",
        "tensorflow",
        "torch",
        "sklearn",
        "matplotlib",
        "distributed",
        "joblib",
        "rich",
    }
)
"""Importing one costs from 60 ms to seconds, and every command would pay it, `--help` included."""
