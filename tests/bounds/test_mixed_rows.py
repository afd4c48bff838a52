"""The conditions behind the bound over stages in a row hold for each plan, where everything is mixed.

The bound is over all plans, and most are far above it. Here it is over one: with its own stages, ways and memory.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from dataclasses import replace as changed
from random import Random

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipebench.bounds.contiguous import class_bound, in_class
from pipebench.bounds.rows_of_stages import Frame, possible
from pipebench.bounds.stage_choices import Line
from pipebench.bounds.stage_figures import MANY, Choice, StageRows, Within
from pipebench.check import check_plan, check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Alternative
from pipebench.domain.schedule import Schedule
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.bounds.mixed_problems import mixed_order, with_just_enough
from tests.bounds.mixed_rows import mixed_row, mixed_row_problem
from tests.nightly import examples
from tests.plugins.running import services

FINITE = ("greedy", "zb-h1", "1f1b", "kfkb")
PERIODIC = ("1f1b*", "1f1b-rr", "modulo", "periodic-bnb")


class LineOfPlan(Line):
    """What the stages of one plan cost, by the ways that it runs them, with as many live as each device held."""

    def __init__(self, problem: Problem, plan: Plan, peaks: dict[int, int]) -> None:
        super().__init__(problem)
        self.plan = plan
        index = problem.profile.graph.index
        self.spans = [[self.place[index[name]] for name in stage.operators] for stage in plan.stages]
        self.chosen = {
            index[name]: way
            for stage in plan.stages
            for name, way in zip(stage.operators, stage.choice, strict=True)
        }
        model = CostModel(problem)
        self.most = [
            min(
                model.stage_memory(plan, position, model.messages(plan)).most_live(
                    max(peaks.get(device, 0) for device in stage.devices)
                ),
                MANY,
            )
            for position, stage in enumerate(plan.stages)
        ]

    def choices(self, micro_batch: int) -> Iterator[Choice]:
        del micro_batch
        yield from dict.fromkeys(map(_choice, self.plan.stages))

    def _ways(self, degree: int, as_layers: bool) -> Sequence[list[Alternative | None]]:  # type: ignore[override]
        del degree, as_layers
        costs = self._model.times.costs.operators
        return [[each.alternative(way) if (way := self.chosen[at]) else None] for at, each in enumerate(costs)]

    def rows(self, micro_batch: int, within: Within) -> StageRows:
        found = []
        for stage, places, live in zip(self.plan.stages, self.spans, self.most, strict=True):
            rows = self._rows_of(_choice(stage), micro_batch, changed(within, memory=False))
            here = rows.chosen((rows.first == min(places)) & (rows.end == max(places) + 1))
            found.append(changed(here, live=np.full_like(here.live, live)))
        joined = {
            each.name: np.concatenate([getattr(one, each.name) for one in found]) for each in fields(StageRows)
        }
        rows = StageRows(**joined)
        return rows.chosen(np.argsort(rows.end, kind="stable"))  # type: ignore[arg-type]


def _choice(stage: Stage) -> Choice:
    return Choice(stage.data_parallel, stage.turns, stage.sharers, stage.tensor_parallel, stage.recompute)


def rows_of(random: Random) -> Iterator[tuple[Problem, Plan, Schedule, dict[int, int], int]]:
    """Plans of the class in random and shipped orders, each with what its devices hold and the ns it takes."""
    problem = mixed_row_problem(random)
    for _ in range(4):
        plan = mixed_row(random, problem)
        if check_plan(problem, plan).status != "valid":
            continue
        sync = problem.regime.mode == "sync"
        schedules: list[Schedule] = [mixed_order(random, problem, plan) for _ in range(2)] if sync else []
        for name in random.sample(FINITE if sync else PERIODIC, 2):
            with suppress(PipebenchError):
                schedules.append(services().schedule(name, problem, plan))
        for schedule in schedules:
            verdict = check_schedule(problem, plan, schedule)
            if verdict.status == "valid" and in_class(problem, plan, schedule):
                taken_s = metrics(problem, plan, simulate(problem, plan, schedule)).seconds
                yield problem, plan, schedule, verdict.peak_bytes, round(taken_s * 1e9)


@settings(max_examples=examples(80), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_the_conditions_leave_each_plan_its_time(random: Random) -> None:
    for problem, plan, _, peaks, taken_ns in rows_of(random):
        frame = Frame.of(LineOfPlan(problem, plan, peaks), plan.stages[0].micro_batch)
        assert possible(frame.row(), taken_ns)


@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_no_plan_is_below_the_bound(random: Random) -> None:
    for problem, _, _, peaks, taken_ns in rows_of(random):
        bound = class_bound(with_just_enough(problem, peaks))
        assert bound is not None
        assert bound.ns <= taken_ns
