"""The tables of certificates are those of the problem: recomputed by a plain statement in fractions."""

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import UNSET

from pipebench.bounds import time_bound
from pipebench.certificates.bound_tables import bound_part
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.profile import Alternative, OperatorCosts
from tests.bounds.drawn_problems import problems
from tests.certificates.made import of_case, valid_cases
from tests.nightly import examples

UNSPLIT = [name for name in valid_cases() if "split operators" not in name]


def interpolated(sizes: tuple[int, ...], times_s: tuple[float, ...], samples: int) -> Fraction:
    """Seconds at so many samples (cost model, section 2)."""
    times = [Fraction(each) for each in times_s]
    if len(sizes) == 1:
        return times[0] * samples / sizes[0]
    right = next((at for at, size in enumerate(sizes) if at and samples <= size), len(sizes) - 1)
    slope = (times[right] - times[right - 1]) / (sizes[right] - sizes[right - 1])
    return max(Fraction(0), times[right] + slope * (samples - sizes[right]))


def ns(sizes: tuple[int, ...], times_s: tuple[float, ...], samples: int) -> int:
    return round(10**9 * interpolated(sizes, times_s, samples))


def operator_ns(sizes: tuple[int, ...], costs: OperatorCosts, way: str, samples: int) -> tuple[int, int, int]:
    """Forward, backward and weight gradient of an operator, as it is or by an alternative."""
    forward, backward = ns(sizes, costs.forward_s, samples), ns(sizes, costs.backward_s, samples)
    weight = ns(sizes, costs.weight_gradient_s, samples) if costs.weight_gradient_s else 0
    if not way:
        return forward, backward, weight
    other = next(each for each in costs.alternatives if each.id == way)
    back = ns(sizes, other.backward_s, samples)
    share = min(round(Fraction(weight * back, backward)), back) if backward else 0
    return ns(sizes, other.forward_s, samples), back, share


def halves(one: list[int], other: list[int]) -> bool:
    """Whether times differ by no more than a rounding of a half, which floats of seconds hold a hair off."""
    return all(abs(a - b) <= 1 for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", UNSPLIT)
def test_times_of_stages_are_those_of_the_profile(name: str) -> None:
    """And their memory: state, what is saved, buffers (cost model, section 7)."""
    case = valid_cases()[name]
    content = json.loads(of_case(name).data)["content"]
    graph = case.problem.profile.graph
    assert content["problem"]["operators"] == [operator.name for operator in graph.operators]
    assert content["problem"]["mini_batch"] == case.problem.mini_batch
    for tensor, producer, readers in content["problem"]["tensors"]:
        found = graph.tensors[graph.tensor_index[tensor]]
        assert found.producer == graph.operators[producer].name
        assert readers == [at for at, operator in enumerate(graph.operators) if tensor in operator.inputs]
    for stage, told in zip(case.plan.stages, content["plan"]["stages"], strict=True):
        on = case.problem.profile.on(case.problem.cluster.devices[stage.devices[0]])
        samples = ceil(stage.micro_batch / (1 if stage.replicas == "round_robin" else stage.data_parallel))
        ways = stage.choice or ("",) * len(stage.operators)
        expected = [
            list(operator_ns(on.micro_batches, on.operators[graph.index[operator]], way, samples))
            for operator, way in zip(stage.operators, ways, strict=True)
        ]
        assert told["compute_ns"] == expected or (
            "between sizes" in name and all(map(halves, told["compute_ns"], expected))
        )
        assert told["memory_bytes"] == memory(case.problem, case.plan, stage, samples)


def memory(problem: Problem, plan: Plan, stage: Stage, samples: int) -> list[int]:
    """Held, for each live micro-batch, once while any is live, workspace."""
    graph, flushes = problem.profile.graph, problem.regime.mode == "sync"
    costs = {
        each.operator: each for each in problem.profile.on(problem.cluster.devices[stage.devices[0]]).operators
    }
    ways = dict(zip(stage.operators, stage.choice or ("",) * len(stage.operators), strict=True))
    used: set[str] = set()
    weights = fixed = saved = 0
    transient = [0]
    for name, way in ways.items():
        chosen: OperatorCosts | Alternative = costs[name]
        if way:
            chosen = next(each for each in costs[name].alternatives if each.id == way)
            weights, fixed = weights + chosen.parameter_bytes, fixed + chosen.fixed_bytes
            transient.append(ceil(Fraction(chosen.transient_bytes_per_sample) * samples))
        else:
            used |= set(graph.operators[graph.index[name]].parameters)
        saved += ceil(Fraction(chosen.saved_bytes_per_sample) * samples)
    weights += sum(graph.parameter_bytes[name] for name in used)
    regime = problem.regime
    each = {"adam": 8, "sgd": 4, "none": 0}[regime.optimizer]
    replicas = stage.data_parallel * plan.copies * plan.pipelines
    group = replicas if regime.sharding_ranks is UNSET else min(replicas, regime.sharding_ranks)
    sharers = group if regime.optimizer_sharding == "zero1" else 1
    state = (1 if flushes else 2) * weights + weights + ceil(Fraction(weights * each, 4 * sharers))
    gathered = 0
    if regime.optimizer_sharding == "zero3" and replicas > 1:
        state = ceil(((2 if flushes else 3) * weights + Fraction(weights * each, 4)) / group)
        own = [
            next((a.parameter_bytes for a in costs[name].alternatives if a.id == way), None)
            if way
            else sum(graph.parameter_bytes[used] for used in graph.operators[graph.index[name]].parameters)
            for name, way in ways.items()
        ]
        gathered = 3 * max(size or 0 for size in own)
    buffers, inputs = crossing(problem, plan, stage, samples)
    again = stage.recompute == "stage"
    held = fixed + state + (0 if flushes else buffers)
    once = max(transient) + (saved if again else 0) + (buffers if flushes else 0)
    return [held, inputs if again else saved, once, gathered + max(costs[name].workspace_bytes for name in ways)]


def crossing(problem: Problem, plan: Plan, stage: Stage, samples: int) -> tuple[int, int]:
    """Bytes of one message and one gradient message of each tensor in and out, and of what is kept."""
    graph = problem.profile.graph
    own = plan.stages.index(stage)
    pipeline = [plan.stages[at] for at in plan.pipeline_of(own)]
    home = {name: each for each in pipeline for name in each.operators}
    shared = 1 if stage.replicas == "round_robin" else stage.data_parallel
    buffers = inputs = 0
    for tensor in graph.tensors:
        readers = [home[operator.name] for operator in graph.operators if tensor.name in operator.inputs]
        if tensor.producer is None:
            inputs += size(tensor.forward_bytes_per_sample, samples, tensor.fixed_bytes) if stage in readers else 0
            continue
        source = home[tensor.producer]
        passed = plan.routing == "relay"
        last = max((pipeline.index(each) for each in readers), default=0)
        first, here = pipeline.index(source), pipeline.index(stage)
        comes = first < here <= last if passed else stage in readers and source != stage
        goes = [pipeline[here + 1]] if passed and first <= here < last else []
        if not passed and source == stage:
            goes = [each for each in readers if each != stage]
        goes = [each for each in goes if sorted(each.devices) != sorted(stage.devices)]
        if comes:
            sender = pipeline[here - 1] if passed else source
            buffers += size(tensor.forward_bytes_per_sample, ceil(sender.micro_batch / shared), tensor.fixed_bytes)
            buffers += size(tensor.gradient_bytes_per_sample, ceil(stage.micro_batch / shared))
            inputs += size(tensor.forward_bytes_per_sample, samples, tensor.fixed_bytes)
        if goes:
            buffers += size(tensor.forward_bytes_per_sample, ceil(stage.micro_batch / shared), tensor.fixed_bytes)
            most = max(each.micro_batch for each in goes)
            buffers += size(tensor.gradient_bytes_per_sample, ceil(most / shared))
    return buffers, inputs


def size(each: float, samples: int, fixed: int = 0) -> int:
    return ceil(Fraction(each) * samples) + fixed


@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(problems())
def test_no_choice_is_left_out_of_the_tables_of_bounds(problem: Problem) -> None:
    """Of every micro-batch, number of replicas, of pipelines and way, none costs less than the table says."""
    try:
        bound = time_bound(problem)
    except InfeasibleProblem:
        return
    flushes, named = problem.regime.mode == "sync", problem.profile.graph.operators[0].name
    for kind in ("work", "operator", "path") if flushes else ("work", "operator"):
        part = bound_part(problem, replace(bound, kind=kind, operator=named), split=False)
        compare(problem, part, flushes)


def compare(problem: Problem, part: dict[str, Any], flushes: bool) -> None:
    """A table against the plain enumeration."""
    for operator in range(len(problem.profile.graph.operators)):
        rows = [
            dict(zip(HEAD + part["columns"], row[1:], strict=True))
            for row in part["choices"]
            if row[0] == operator
        ]
        every = list(choices(problem, operator))
        assert every
        if part["kind"] == "work":
            work = [
                row["runs"] * (row["replicas"] if row["turns"] == 1 else 1) * row["devices"] * row["busy"]
                for row in rows
            ]
            assert min(work) <= min(each["work"] for each in every)
            if problem.pins == Pins():
                assert min(work) == min(each["work"] for each in every)
            continue
        for each in every:
            assert min(lane_ns(row, flushes) for row in rows) <= each["lane"]
        if part["kind"] == "path":
            for column in ("forward", "once"):
                least = min(row[column] for row in rows)
                assert least <= min(each[column] for each in every)
                if problem.pins == Pins():
                    assert least == min(each[column] for each in every)


def lane_ns(row: dict[str, Any], flushes: bool) -> int:
    """Of a choice of a table, with the update."""
    runs, turns, busy = row["runs"], row["turns"], row["busy"]
    each: int = -(-runs // turns) * busy if flushes else -(-runs * busy // turns)
    return each + int(row["update"])


HEAD = ["way", "type", "devices", "runs", "samples", "replicas", "turns"]


def choices(problem: Problem, operator: int) -> Iterator[dict[str, Any]]:
    """What the operator costs alone in a stage, in every way: by plain enumeration."""
    (on,) = problem.profile.costs
    costs, pins, flushes = on.operators[operator], problem.pins, problem.regime.mode == "sync"
    devices, batch, model = problem.cluster.size, problem.mini_batch, CostModel(problem)
    for way in ("", *(each.id for each in costs.alternatives)):
        degree = next((each.tensor_parallel for each in costs.alternatives if each.id == way), None)
        for width in range(1, devices + 1):
            if degree not in (None, width) or pins.tensor_parallel not in (None, width):
                continue
            for pipelines in range(1, devices + 1):
                for replicas in range(1, devices // (pipelines * width) + 1):
                    if pins.data_parallel not in (None, pipelines * replicas) or batch % pipelines:
                        continue
                    for micro_batch in range(1, batch // pipelines + 1):
                        if batch // pipelines % micro_batch or pins.micro_batch not in (None, micro_batch):
                            continue
                        for turns in {1, replicas}:
                            sharers = replicas // turns
                            samples = -(-micro_batch // sharers)
                            each = micro_batch // sharers if micro_batch % sharers == 0 else -1
                            if sharers > micro_batch or pins.micro_batch_size not in (None, each):
                                continue
                            forward, backward, _ = operator_ns(on.micro_batches, costs, way, samples)
                            runs, busy = batch // pipelines // micro_batch, forward + backward
                            stage = Stage(
                                operators=(on.operators[operator].operator,),
                                devices=tuple(range(replicas * width)),
                                data_parallel=replicas,
                                tensor_parallel=width,
                                micro_batch=micro_batch,
                                replicas="round_robin" if turns > 1 else "split",
                                choice=(way,),
                            )
                            times = model.stage_times(stage, Plan(stages=(stage,), copies=pipelines))
                            lane = -(-runs // turns) * times.period + times.all_reduce
                            yield {
                                "work": runs * pipelines * sharers * width * busy,
                                "lane": lane if flushes else -(-runs * times.period // turns),
                                "forward": forward,
                                "once": busy,
                            }


def test_every_kind_of_bound_is_among_the_drawn() -> None:
    """The golden cases have certificates of more than one kind; `assume` above leaves none out."""
    kinds = {json.loads(of_case(name).data)["content"]["bound"]["kind"] for name in valid_cases()}
    assert {"work", "path"} <= kinds or {"operator", "path"} <= kinds
