"""Random plans whose stages share devices."""

from hypothesis import strategies as st

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from tests.algorithms.strategies import chains, partitions
from tests.plugins.madpipe.brute_force import on_devices


@st.composite
def shared_plans(draw: st.DrawFn, most_layers: int = 6, least_time: int = 0) -> tuple[Problem, Plan]:
    """A chain on at most 3 devices, cut anywhere, each stage on any device."""
    problem = draw(chains(most_layers=most_layers, most_devices=3, least_time=least_time))
    length, gpus = len(problem.profile.graph.operators), problem.cluster.size
    bounds = draw(partitions(length, length))
    devices = tuple(draw(st.integers(0, gpus - 1)) for _ in bounds[1:])
    return problem, on_devices(problem, bounds, devices)
