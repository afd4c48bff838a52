"""The model zoo: operator graphs built from parameters, with kinds and shapes and no times."""
