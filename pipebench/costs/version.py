"""The version of the model that scores: what figures of a plan depend on in the host, as one number."""

MODEL_VERSION = 12
"""Raise it by one when a plan gets other figures than before: an estimate, a simulated time, a peak memory, a
verdict or a bound. Rows of a store that were made under another version are run again. It stands for the code of
`domain`, `costs`, `check`, `bounds`, `simulation` and `bench`, and for the kernels of `algorithms` that these use.

A refactoring that changes no figure leaves it as it is. `tests/acceptance/test_golden.py` fails when figures
change and this number does not; `python -m tests.acceptance.golden --write` writes the figures of a version down.
"""
