"""Problems of PaSE's models, and its planners on them."""

from functools import cache
from typing import Any

from pipebench.domain.graph import OperatorGraph
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_pase import expert, mcmc, planner
from pipebench_pase.plugin import ExpertOptions, MCMCOptions, PaSEOptions
from tests.builders import cluster
from tests.models.zoo import model

MODELS = ("alexnet", "inception_v3", "rnnlm", "transformer")


@cache
def problem(
    name: str, devices: int, samples: int = 128, micro_batch: int | None = None, **options: Any
) -> Problem:
    """A model of PaSE's with a profile that says one nanosecond for everything: its own costs need no more."""
    return of_graph(model(f"pase-{name}", **options), devices, samples, micro_batch)


def of_graph(graph: OperatorGraph, devices: int, samples: int, micro_batch: int | None = None) -> Problem:
    """A graph with such a profile."""
    costs = tuple(OperatorCosts(operator=op.name, forward_s=(1e-9,), backward_s=(1e-9,)) for op in graph.operators)
    profile = Profile(
        name=graph.name, graph=graph, costs=(DeviceCosts(device_type="gpu", micro_batches=(1,), operators=costs),)
    )
    return Problem(
        profile=profile,
        cluster=cluster(devices),
        mini_batch=samples,
        regime=Regime(mode="sync"),
        pins=Pins(micro_batch=micro_batch),
    )


def pase(problem: Problem, **options: Any) -> PlanResult:
    """The planner `pase`."""
    return planner.plan(problem, Context(options=PaSEOptions(**options)))


def by_experts(problem: Problem, **options: Any) -> PlanResult:
    """The planner `expert`."""
    return expert.plan(problem, Context(options=ExpertOptions(**options)))


def by_walk(problem: Problem, seed: int = 0, **options: Any) -> PlanResult:
    """The planner `mcmc`."""
    return mcmc.plan(problem, Context(options=MCMCOptions(**options), seed=seed))
