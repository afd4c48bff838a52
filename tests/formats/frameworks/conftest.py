"""A plan that every target can express."""

import pytest

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from tests.language_models import TINY, planned, problem


@pytest.fixture(scope="module")
def given() -> tuple[Problem, Plan]:
    """Eight layers on four stages of two devices."""
    pins = Pins(tensor_parallel=2, pipeline=4, data_parallel=1, virtual_stages=1, micro_batch=1, recompute="none")
    made = problem(devices=8, mini_batch=16, pins=pins, **TINY)
    return made, planned(made)
