"""How wrong the times of embedding and head may be before other cuts of the same degrees are better."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from pipebench.algorithms.chains.level_cuts import (
    Bounds,
    Groups,
    cut_items,
    equal_bounds,
    language_items,
    level_devices,
)
from pipebench.bench.exports.prediction import framework_scheduler
from pipebench.bench.score import judge
from pipebench.bench.services import HostServices
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Alternative, OperatorCosts
from pipebench.domain.schedule import FiniteSchedule
from pipebench.formats.frameworks.arrangement import Arrangement
from pipebench.simulation.step_time import StepTime


def uniform_bounds(made: Arrangement) -> Bounds | None:
    """Equal numbers of layers on every stage, embedding on the first and head on the last; None: too few layers.

    What frameworks do when nothing is said; where stages do not divide the layers, numbers differ by one.
    """
    items = cut_items(made.graph)
    language = language_items(made.graph) is not None
    layers = len(items) - 2 if language else len(items)
    if layers < len(made.stages):
        return None
    inner = equal_bounds(layers, len(made.stages))
    if not language:
        return inner
    return (0, *(bound + 1 for bound in inner[1:-1]), len(items))


def bounds_of(made: Arrangement) -> Bounds | None:
    """The plan's own cuts between items; None where it cuts elsewhere."""
    items = cut_items(made.graph)
    ends = {0: 0}
    count = 0
    for position, group in enumerate(items):
        count += len(group)
        ends[count] = position + 1
    total, bounds = 0, [0]
    for stage in made.stages:
        total += len(stage)
        if total not in ends:
            return None
        bounds.append(ends[total])
    return tuple(bounds)


def recut(made: Arrangement, bounds: Bounds) -> Plan:
    """The plan with these cuts, every operator run as before, stage k where stage k was."""
    items: Groups = cut_items(made.graph)
    plan, operators = made.plan, made.graph.operators
    chosen = {
        name: identifier
        for stage in plan.stages
        for name, identifier in zip(stage.operators, stage.choice, strict=False)
    }
    order = {operators[contents[0]].name: k for k, contents in enumerate(made.stages)}
    position_of = sorted(
        range(len(plan.stages)), key=lambda p: min(order.get(n, len(order)) for n in plan.stages[p].operators)
    )
    rounds = made.problem.mini_batch // (plan.stages[0].micro_batch * plan.all_pipelines)
    count = len(made.stages)
    stages = []
    for k, (first, end) in enumerate(pairwise(bounds)):
        old = plan.stages[position_of[k]]
        names = tuple(operators[op].name for group in items[first:end] for op in group)
        choice = tuple(chosen.get(name, "") for name in names)
        live = min(count - k, rounds) if made.virtual == 1 else 0
        stages.append(
            replace(
                old,
                operators=names,
                choice=choice if any(choice) else (),
                in_flight=live * old.micro_batch,
            )
        )
    edges = tuple(pairwise(range(count))) if plan.order_edges else ()
    return replace(plan, stages=tuple(stages), order_edges=edges)


LOWER, UPPER = 0.0, 4.0
GRID = (1.1, 1.25, 1.5, 2.0, 2.5, 3.0, UPPER), (0.9, 0.75, 0.5, 0.25, LOWER)
HALVINGS = 4
MOST_RIVALS = 8
LONGEST_S = 8.0


@dataclass(frozen=True, slots=True)
class Turn:
    """item: `embedding` or `head`. factor: of its times from which on another plan is faster (1: it already is),
    None: none up to the end of that direction (`limit`). rival: that plan. rival_s: what it takes where it is
    faster already. finished: whether there was time for the whole direction; else `limit` is how far it came.
    upwards: whether times were made longer.
    """

    item: str
    limit: float
    factor: float | None
    rival: Plan | None
    finished: bool = True
    rival_s: float | None = None
    upwards: bool = True


@dataclass(frozen=True, slots=True)
class _Rival:
    """A plan, and what it takes under the framework's schedule."""

    plan: Plan
    step: StepTime


def turns(services: HostServices, made: Arrangement) -> list[Turn]:
    """For head and embedding, upwards and downwards; empty where the plan cuts elsewhere than between layers.

    Rivals are the uniform split, the plan with any cut moved by one, and what levels the load at each factor of
    the grid, as far as they fit. The factor is found by halving between two of the grid, by simulation.
    """
    own = bounds_of(made)
    items = cut_items(made.graph)
    if own is None or len(made.stages) < 2 or made.problem.regime.mode == "async":
        return []
    until = time.monotonic() + LONGEST_S
    ends = {"head": items[-1], "embedding": items[0]}
    found = []
    everyone = _rivals(
        services,
        made,
        own,
        [
            _with_scaled_times(made.problem, group, factor)
            for group in ends.values()
            for grid in GRID
            for factor in grid
        ],
    )
    if everyone is None:
        return []
    mine, rivals = everyone
    for item, group in ends.items():
        for grid in GRID:
            found.append(_turn(made.problem, item, group, grid, mine, rivals, until))
    return found


def _turn(
    problem: Problem,
    item: str,
    group: Sequence[int],
    grid: Sequence[float],
    mine: _Rival,
    rivals: list[_Rival],
    until: float,
) -> Turn:
    def better(factor: float) -> _Rival | None:
        changed = _with_scaled_times(problem, group, factor)
        least, winner = mine.step.ns(changed), None
        for rival in rivals:
            found = rival.step.ns(changed)
            if found < least:
                least, winner = found, rival
        return winner

    already = better(1.0)
    if already is not None:
        taken_s = already.step.ns(problem) / NS_PER_S
        return Turn(item, grid[-1], 1.0, already.plan, rival_s=taken_s)
    before, upwards = 1.0, grid[0] > 1
    for factor in grid:
        if time.monotonic() > until:
            return Turn(item, before, None, None, finished=False, upwards=upwards)
        winner = better(factor)
        if winner is not None:
            edge, winner = _bisect(better, before, factor, winner, until)
            return Turn(item, grid[-1], edge, winner.plan, upwards=upwards)
        before = factor
    return Turn(item, grid[-1], None, None, upwards=upwards)


def _bisect(
    better: Callable[[float], "_Rival | None"], keeps: float, loses: float, winner: _Rival, until: float
) -> tuple[float, _Rival]:
    for _ in range(HALVINGS):
        if time.monotonic() > until:
            break
        middle = (keeps + loses) / 2
        found = better(middle)
        if found is None:
            keeps = middle
        else:
            loses, winner = middle, found
    return loses, winner


def _rivals(
    services: HostServices, made: Arrangement, own: Bounds, changed: Sequence[Problem]
) -> tuple[_Rival, list[_Rival]] | None:
    """The plan itself under the framework's schedule, and others that fit under it."""
    listed: list[Bounds] = []
    uniform = uniform_bounds(made)
    if uniform is not None:
        listed.append(uniform)
    for problem in changed:
        listed.append(level_devices(_times(problem, made), [(rank,) for rank in made.rank_of], own))
    for cut in (1, len(own) - 2):
        for step in (-1, 1):
            moved = list(own)
            moved[cut] += step
            if all(a < b for a, b in pairwise(moved)):
                listed.append(tuple(moved))
    name = framework_scheduler(made)
    rivals: list[_Rival] = []
    mine: _Rival | None = None
    for bounds in dict.fromkeys((own, *listed)):
        plan = recut(made, bounds)
        try:
            schedule = services.schedule(name, made.problem, plan)
        except PipebenchError:
            continue
        if not isinstance(schedule, FiniteSchedule) or judge(made.problem, plan, schedule).status != "valid":
            continue
        if bounds == own:
            mine = _Rival(plan, StepTime(plan, schedule))
        elif len(rivals) < MOST_RIVALS:
            rivals.append(_Rival(plan, StepTime(plan, schedule)))
    return None if mine is None else (mine, rivals)


def _times(problem: Problem, made: Arrangement) -> list[int]:
    """Forward and backward ns of each item as the plan runs it."""
    model = CostModel(problem)
    chosen = {
        name: identifier
        for stage in made.plan.stages
        for name, identifier in zip(stage.operators, stage.choice, strict=False)
    }
    names = [operator.name for operator in made.graph.operators]
    each = [
        sum(model.times.choice_ns(op, chosen.get(name, ""), made.micro_batch)[:2]) for op, name in enumerate(names)
    ]
    return [int(np.sum([each[op] for op in group])) for group in cut_items(made.graph)]


def _with_scaled_times(problem: Problem, group: Sequence[int], factor: float) -> Problem:
    """The problem with the times of some operators multiplied."""

    def times(seconds: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(each * factor for each in seconds)

    def way(alternative: Alternative) -> Alternative:
        return replace(
            alternative,
            forward_s=times(alternative.forward_s),
            backward_s=times(alternative.backward_s),
            forward_collective_s=times(alternative.forward_collective_s),
            backward_collective_s=times(alternative.backward_collective_s),
        )

    def costs(position: int, each: OperatorCosts) -> OperatorCosts:
        if position not in group:
            return each
        return replace(
            each,
            forward_s=times(each.forward_s),
            backward_s=times(each.backward_s),
            weight_gradient_s=times(each.weight_gradient_s),
            alternatives=tuple(map(way, each.alternatives)),
        )

    profile = problem.profile
    changed = tuple(
        replace(device, operators=tuple(costs(position, each) for position, each in enumerate(device.operators)))
        for device in profile.costs
    )
    return replace(problem, profile=replace(profile, costs=changed))
