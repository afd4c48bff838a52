"""One iteration of an expressed run, simulated with the host's own components: no planner, no search."""

from collections import OrderedDict
from collections.abc import Hashable
from itertools import accumulate, pairwise
from typing import TypeVar, cast

from msgspec.structs import replace

from pipebench.algorithms.chains.level_cuts import Bounds, Groups, cut_items, level_devices
from pipebench.algorithms.chains.stage_row import Way, stage_row, way
from pipebench.bench.accuracy.expression import ExpressedRun
from pipebench.bench.prediction_interval import interval_of
from pipebench.bench.problems.plugin_sources import build_graph, profile_graph
from pipebench.bench.problems.workload_builder import tuned_framework, with_framework
from pipebench.bench.score import judge
from pipebench.bench.services import HostServices
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S
from pipebench.costs.shapes.context import with_context_devices
from pipebench.defaults import IN_A_V, INTERLEAVED, ONE_F_ONE_B
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Profile
from pipebench.domain.schedule import FiniteSchedule, Schedule
from pipebench.domain.tuning import USUAL_REACH
from pipebench.domain.value import Value
from pipebench.domain.workload import problem_of
from pipebench.formats.frameworks.facts import load_framework
from pipebench.hooks.context import ProfileRequest
from pipebench.hooks.syntax import parse_reference
from pipebench.simulation.step_parts import PartedStep
from pipebench.simulation.step_time import StepTime

V = TypeVar("V")
FIXED_ORDERS = (ONE_F_ONE_B, INTERLEAVED)
"""Schedulers whose order of tasks no cost changes."""
FAR_BEYOND = 1.5
"""Memory of measured runs is predicted up to 30 % off."""
MOST_KEPT = 64
"""Profiles that are kept: rows of one model follow each other."""


class Simulated(Value, frozen=True, kw_only=True):
    """What the suite predicts of a run.

    simulated_s: seconds of one iteration. low_s, high_s: the ends of its interval, None where there is none.
    memory_bytes: peak of the fullest device. memory_high_bytes: the upper end of its interval.
    too_large: whether tensors alone are far beyond what the device has, whatever the error of the prediction.
    """

    simulated_s: float
    low_s: float | None = None
    high_s: float | None = None
    memory_bytes: int
    memory_high_bytes: int | None = None
    too_large: bool = False


class Predictor:
    """Predicts run after run; graphs and profiles are kept from one to the next."""

    def __init__(self, services: HostServices) -> None:
        self._services = services
        self._graphs: OrderedDict[Hashable, OperatorGraph] = OrderedDict()
        self._profiles: OrderedDict[Hashable, Profile] = OrderedDict()
        self._steps: OrderedDict[Hashable, StepTime] = OrderedDict()

    def predict(self, run: ExpressedRun) -> Simulated:
        """The prediction. Raises PipebenchError where the plan is not valid, a scheduler refuses it, or a profiler
        cannot price the model.
        """
        problem = self.problem(run)
        plan = plan_of(problem, run)
        schedule = self._services.schedule(run.scheduler, problem, plan)
        verdict = judge(problem, plan, schedule)
        if not verdict.peak_bytes:
            raise PipebenchError(verdict.witness.message if verdict.witness else verdict.reason)
        simulated_s = _step(run, plan, schedule).ns(problem) / NS_PER_S
        interval = interval_of(problem, plan, simulated_s)
        tensors_bytes = max(verdict.peak_bytes.values())
        return Simulated(
            simulated_s=simulated_s,
            low_s=None if interval is None else interval.low_s,
            high_s=None if interval is None else interval.high_s,
            memory_bytes=tensors_bytes,
            memory_high_bytes=_with_overhead(tensors_bytes, run.spec.framework),
            too_large=tensors_bytes > FAR_BEYOND * min(device.memory_bytes for device in run.cluster.types),
        )

    def seconds(self, run: ExpressedRun) -> float:
        """`simulated_s` of a run that was predicted with other constants, sooner: its plan is not judged again.

        Where the order of a schedule follows from the plan alone, it is made once.
        """
        problem = self.problem(run)
        plan = plan_of(problem, run)
        key = (run.scheduler, plan, problem.mini_batch)
        step = self._steps.get(key)
        if step is None:
            step = _step(run, plan, self._services.schedule(run.scheduler, problem, plan))
            if run.scheduler in FIXED_ORDERS:
                _keep(self._steps, key, step)
        return step.ns(problem) / NS_PER_S

    def kernels_s(self, run: ExpressedRun, rank: int) -> float:
        """Seconds of kernels that a rank runs in an iteration, the optimizer among them. A rank is a device, or
        one of those for which a device stands.
        """
        problem = self.problem(run)
        plan = plan_of(problem, run)
        step = PartedStep(problem, plan, self._services.schedule(run.scheduler, problem, plan))
        device = rank // problem.cluster.rank_count
        (lane,) = [each for each in step.devices if device in each.devices]
        return (lane.ns["kernels"] + lane.ns["optimizer"]) / NS_PER_S

    def problem(self, run: ExpressedRun) -> Problem:
        """The problem with the profile of its model."""
        cluster = run.cluster if run.tuning is None else run.tuning.cluster_of(run.cluster)
        profile = self._profile(run, cluster)
        cluster = with_context_devices(cluster, run.spec.cp)
        spec, step = with_framework(run.spec, profile.precision, cluster, run.tuning)
        if run.reduces_last and step is not None:
            step = replace(step, reduce_overlap=0.0)
        assert spec.mini_batch is not None
        return problem_of(spec, profile, cluster, spec.mini_batch, step)

    def _profile(self, run: ExpressedRun, cluster: Cluster) -> Profile:
        spec, types = run.spec, cluster.types
        request = ProfileRequest(
            devices=types,
            micro_batches=((spec.micro_batch or 1) // (spec.dp or 1),),
            precision=spec.precision or "fp32",
            framework=tuned_framework(spec.framework, run.tuning),
            links=cluster.levels,
            reach=USUAL_REACH if run.tuning is None else run.tuning.reach,
            selective=spec.recompute == "selective",
            expert_parallel=spec.ep,
            context_parallel=spec.cp,
        )
        key = (spec.model, spec.profiler, request)
        if key not in self._profiles:
            made = profile_graph(self._services.host, spec.profiler, self._graph(spec.model or ""), request)
            _keep(self._profiles, key, made)
        return self._profiles[key]

    def _graph(self, model: str) -> OperatorGraph:
        if model not in self._graphs:
            _keep(self._graphs, model, build_graph(self._services.host, parse_reference(model)))
        return self._graphs[model]


def _step(run: ExpressedRun, plan: Plan, schedule: Schedule) -> StepTime:
    if not isinstance(schedule, FiniteSchedule):
        raise PipebenchError(f"{run.scheduler} has no flush, and measured runs have one")
    return StepTime(plan, schedule)


def _with_overhead(tensors_bytes: int, framework: str | None) -> int | None:
    """Bytes of the device where the allocator's slack, the context and the libraries count as well."""
    if framework is None:
        return None
    facts = load_framework(framework)
    return round(tensors_bytes * (1 + facts.slack)) + facts.context_bytes


def _keep(kept: OrderedDict[Hashable, V], key: Hashable, value: V) -> None:
    kept[key] = value
    if len(kept) > MOST_KEPT:
        kept.popitem(last=False)


def plan_of(problem: Problem, run: ExpressedRun) -> Plan:
    """The plan that the framework runs: the same degrees on all stages, consecutive devices.

    Raises PipebenchError for a degree that the model does not offer.
    """
    pins = problem.pins
    tp, dp, pp = pins.tensor_parallel or 1, pins.data_parallel or 1, pins.pipeline or 1
    chosen = way(problem, tp, pins.recompute)
    if chosen is None:
        raise PipebenchError(f"the model offers no tensor parallelism of degree {tp}")
    items = cut_items(problem.profile.graph)
    bounds = item_bounds(run.layers_by_stage)
    if run.level:
        bounds = _level(problem, items, chosen, bounds, pp)
    plan = stage_row(
        problem,
        [tuple(op for group in items[first:end] for op in group) for first, end in pairwise(bounds)],
        chosen,
        data_parallel=dp,
        pipeline=pp,
        micro_batch=cast(int, pins.micro_batch),
        placement="v" if run.scheduler == IN_A_V else "in-turn",
    )
    return plan if run.scheduler == ONE_F_ONE_B else plan.without_in_flight()


def item_bounds(layers_by_stage: tuple[int, ...]) -> Bounds:
    """Cuts between items of a language model: embedding, each layer, head. Embedding goes first, head last."""
    ends = [1 + count for count in accumulate(layers_by_stage)]
    return (0, *ends[:-1], ends[-1] + 1)


def _level(problem: Problem, items: Groups, chosen: Way, start: Bounds, pipeline: int) -> Bounds:
    """Cuts of which the busiest device is as fast as moves make it."""
    model, pins = CostModel(problem), problem.pins
    each = (pins.micro_batch or 1) // (pins.data_parallel or 1)
    times = [sum(sum(model.times.choice_ns(op, chosen.choice[op], each)[:2]) for op in group) for group in items]
    return level_devices(times, [(stage % pipeline,) for stage in range(len(start) - 1)], start)
