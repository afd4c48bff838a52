"""Explanations: the named changes, applied one by one, lead from one simulated time to the other exactly."""

import random
from dataclasses import dataclass, replace

import pytest
from msgspec.structs import replace as replaced

from pipebench.bench.explanation import Explainer, Step, differences
from pipebench.bench.services import HostServices
from pipebench.bench.shape import width
from pipebench.costs.messages import stage_edges
from pipebench.documents.document import PlannedProblem
from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.hooks.manager import Host
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.builders import cluster, dag_problem, stages_plan

HOST = Host()
SERVICES = HostServices(HOST)
SYNC, ASYNC = ("gpipe", "1f1b", "greedy"), ("1f1b-rr",)
CUTS = ([[0], [1, 2], [3, 4], [5]], [[0, 1, 2], [3, 4], [5]], [[0], [1, 3], [2, 4], [5]])


@dataclass(frozen=True)
class Made:
    """A plan by what it is made of. chain: stages side by side wait for each other."""

    cut: int = 0
    chain: bool = False
    micro_batch: int = 1
    mode: RegimeMode = "sync"
    scheduler: str = "1f1b"


def problem(seed: int, mode: RegimeMode) -> Problem:
    """Two branches between a first and a last operator."""
    draw = random.Random(seed)
    edges = [(0, (1, 3), 900), (1, (2,), 700), (2, (5,), 300), (3, (4,), 400), (4, (5,), 600)]
    ns = [[draw.randint(1_000, 9_000) for _ in range(6)] for _ in "fb"]
    return dag_problem(*ns, edges, cluster(4), mode=mode, mini_batch=8, micro_batches=(1, 2, 4, 8))


def planned(seed: int, made: Made) -> PlannedProblem:
    on = problem(seed, made.mode)
    cut = CUTS[made.cut]
    order = [(at, at + 1) for at in range(len(cut) - 1)] if made.chain else []
    plan = stages_plan(cut, micro_batch=made.micro_batch, order_edges=order)
    schedule = SERVICES.schedule(made.scheduler, on, plan)
    return PlannedProblem(problem=on, plan=plan, schedule=schedule, scheduler=made.scheduler)


def seconds(of: PlannedProblem) -> float:
    assert of.schedule is not None
    return metrics(of.problem, of.plan, simulate(of.problem, of.plan, of.schedule)).seconds


def drawn(draw: random.Random) -> Made:
    mode: RegimeMode = draw.choice(("sync", "sync", "async"))
    return Made(
        draw.randrange(3),
        draw.random() < 0.5,
        draw.choice((1, 2, 4)),
        mode,
        draw.choice(SYNC if mode == "sync" else ASYNC),
    )


def mixed(first: Made, second: Made, aspects: tuple[str, ...]) -> Made:
    """The first with these aspects of the second."""
    said = {"cut": ("cut", "chain"), "order": ("chain",), "micro-batch": ("micro_batch",),
            "flush": ("mode", "scheduler"), "scheduler": ("scheduler",)}  # fmt: skip
    names = [name for aspect in aspects for name in said[aspect]]
    return replace(first, **{name: getattr(second, name) for name in names})


@pytest.mark.parametrize("seed", range(30))
def test_the_changes_lead_from_one_figure_to_the_other(seed: int) -> None:
    draw = random.Random(seed)
    first, second = drawn(draw), drawn(draw)
    one, other = planned(seed, first), planned(seed, second)
    (steps,) = Explainer(HOST).explain([(one, other)])
    aspects = tuple(aspect for step in steps for aspect in step.aspects)
    assert aspects == differences(one, other)
    if first == second:
        assert steps == []
        return
    if not steps:  # other words for the same plan: a chain that has no branches to order
        assert seconds(one) == seconds(other)
        return
    assert (steps[0].before_s, steps[-1].after_s) == (seconds(one), seconds(other))
    done: tuple[str, ...] = ()
    for before, step in zip([None, *steps], steps, strict=False):
        assert before is None or before.after_s == step.before_s
        done += step.aspects
        assert step.after_s == pytest.approx(seconds(planned(seed, mixed(first, second, done))), rel=1e-12)


def test_a_change_that_no_scheduler_orders_is_made_with_the_next_one() -> None:
    """1F1B* orders chains alone: the graph of stages comes with the scheduler that takes it."""
    chain = Made(chain=True, mode="async", scheduler="1f1b*")
    one, other = planned(1, chain), planned(1, replace(chain, chain=False, scheduler="1f1b-rr"))
    (steps,) = Explainer(HOST).explain([(one, other)])
    assert steps == [Step(("order", "scheduler"), seconds(one), seconds(other))]


def test_the_planners_own_order_cannot_be_made_for_another_plan() -> None:
    one = replaced(planned(2, Made()), scheduler="own")
    other = planned(2, Made(micro_batch=2, scheduler="greedy"))
    (steps,) = Explainer(HOST).explain([(one, other)])
    assert [step.aspects for step in steps] == [("micro-batch", "scheduler")]


def test_the_plans_are_of_both_shapes() -> None:
    """The cases above change what they say that they change."""
    widths = set()
    for chain in (True, False):
        of = planned(0, Made(chain=chain))
        edges = stage_edges(of.problem.profile.graph, of.plan)
        widths.add(width(len(of.plan.stages), edges))
    assert widths == {1, 2}
    with pytest.raises(PipebenchError):
        planned(0, Made(mode="async", scheduler="1f1b*"))
