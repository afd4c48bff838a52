"""The parts of a simulated step: what each device's time goes to, and the step with one part scaled.

For plans with a flush. All figures are integers: the parts of a device add up to the simulated step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.costs.tasks import B, F, I, R, W, tasks_of
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule, Schedule
from pipebench.simulation.deadlock import Standstill
from pipebench.simulation.kernel import Instants, run_loop
from pipebench.simulation.network import FlowTable, coverage, flow_table, slot_of
from pipebench.simulation.stages import StageTable, samples_of_pipeline, stage_table
from pipebench.simulation.tasks import TaskTable, task_durations, task_table

Part = Literal["kernels", "tensor_parallel", "messages", "gradients", "optimizer", "bubble"]
"""kernels: forwards and backwards without communication. tensor_parallel: what collectives inside stages add to
them. messages: waits for a tensor that another stage has sent off. gradients: their reduction, as far as no
backward hides it. optimizer: the update itself. bubble: every other idle time."""
PARTS: tuple[Part, ...] = get_args(Part)
TASK_PARTS: tuple[Part, ...] = ("kernels", "tensor_parallel", "gradients", "optimizer")
"""Parts that tasks consist of; the others are what lies between tasks."""
MILLION = 1_000_000
"""Factors are whole millionths."""


@dataclass(frozen=True, slots=True)
class DeviceParts:
    """One lane: its devices, and the ns of each part. They add up to the step."""

    devices: tuple[int, ...]
    ns: Mapping[Part, int]

    @property
    def busy_ns(self) -> int:
        """ns of tasks."""
        return sum(self.ns[part] for part in TASK_PARTS)


@dataclass(frozen=True, slots=True)
class _Run:
    stages: StageTable
    tasks: TaskTable
    network: FlowTable
    instants: Instants

    @property
    def total_ns(self) -> int:
        """As in the trace of the same run."""
        end = self.instants.start + self.tasks.duration
        return int(max(end.max(initial=0), self.instants.arrived.max(initial=0)))


class PartedStep:
    """A plan under its schedule, simulated as `simulate` does it, as often as is asked.

    given: factors of parts in millionths, with which everything is simulated.
    Raises UnsupportedProblem for a plan without a flush, which has no step; else as `simulate` does.
    """

    def __init__(
        self, problem: Problem, plan: Plan, schedule: Schedule, given: Mapping[Part, int] | None = None
    ) -> None:
        if problem.regime.mode == "async" or not isinstance(schedule, FiniteSchedule):
            raise UnsupportedProblem("a plan without a flush has no step whose parts could be told")
        model = CostModel(problem)
        stages = stage_table(model, plan, samples_of_pipeline(model, plan))
        tasks, network = task_table(tasks_of(schedule), stages), flow_table(model, plan, stages)
        shares = _shares(model, plan, stages)
        self._tables = _scaled_tables(_Tables(shares, stages, tasks, network), given or {})

    @cached_property
    def _plain(self) -> _Run:
        return self._run({})

    @property
    def total_ns(self) -> int:
        """The simulated step."""
        return self._plain.total_ns

    def scaled_ns(self, factors: Mapping[Part, int]) -> int:
        """The simulated step with parts scaled, each by so many millionths; every time is rounded half up.

        factors: of what the parts have with the given ones. The bubble follows from the others and is not scaled.
        """
        return self._run(factors).total_ns

    @cached_property
    def devices(self) -> tuple[DeviceParts, ...]:
        """The parts of each lane.

        A pair of tasks hides communication first. An idle time before a task is `messages` as far as the message
        that arrived last was on its way, from the end of the task that made it; the rest is bubble, and so is the
        time after the last task.
        """
        run = self._plain
        columns = run.tasks.columns
        shares = self._tables.shares[:, columns.kind, columns.stage]
        first, second = columns.together, columns.together + 1
        shares[0, first] = np.minimum(run.tasks.duration[first], shares[0, first] + shares[0, second])
        left = run.tasks.duration[first] - shares[0, first]
        shares[1, first] = np.minimum(left, shares[1, first] + shares[1, second])
        shares[2, first] = left - shares[1, first]
        shares[:, second] = 0
        sent = _sent_off(run)
        return tuple(
            DeviceParts(
                devices=devices,
                ns=_lane_parts(run, slice(int(columns.first[lane]), int(columns.first[lane + 1])), shares, sent),
            )
            for lane, devices in enumerate(columns.devices)
        )

    @property
    def critical(self) -> DeviceParts:
        """The lane that is busy longest; of equals the first."""
        return max(self.devices, key=lambda each: each.busy_ns)

    def _run(self, factors: Mapping[Part, int]) -> _Run:
        tables = _scaled_tables(self._tables, factors)
        instants = run_loop(tables.stages, tables.tasks, tables.network)
        if instants.ended < len(tables.tasks.lane):
            raise Standstill(tables.stages, tables.tasks, tables.network, instants).error()
        return _Run(tables.stages, tables.tasks, tables.network, instants)


@dataclass(frozen=True, slots=True)
class _Tables:
    """shares: ns of each part of TASK_PARTS by kind of task and stage; they add up to StageTable.duration."""

    shares: IntArray
    stages: StageTable
    tasks: TaskTable
    network: FlowTable


def _scaled_tables(tables: _Tables, factors: Mapping[Part, int]) -> _Tables:
    if not factors:
        return tables
    each = [_scaled(tables.shares[at], factors.get(part, MILLION)) for at, part in enumerate(TASK_PARTS)]
    stages = replace(tables.stages, duration=np.sum(each, axis=0))
    flight, network = factors.get("messages", MILLION), tables.network
    return _Tables(
        shares=np.stack(each),
        stages=stages,
        tasks=replace(tables.tasks, duration=task_durations(tables.tasks.columns, stages)),
        network=replace(
            network, duration=_scaled(network.duration, flight), port_ns=_scaled(network.port_ns, flight)
        ),
    )


def _scaled(ns: IntArray, millionths: int) -> IntArray:
    if millionths == MILLION:
        return ns
    whole, rest = np.divmod(ns, MILLION)  # the product of both would not fit into 64 bits
    scaled: IntArray = whole * millionths + (rest * millionths + MILLION // 2) // MILLION
    return scaled


def _shares(model: CostModel, plan: Plan, stages: StageTable) -> IntArray:
    """See _Tables."""
    shares = np.zeros((len(TASK_PARTS), *stages.duration.shape), np.int64)
    kernels, collectives, gradients, optimizer = shares
    for position, stage in enumerate(plan.stages):
        forward, backward, inputs, weights, update = stages.duration[:, position]
        there, back = model.collective_ns(stage, plan)
        exchange = model.exposed_exchange_ns(stage, plan)
        gradients[F, position], gradients[[B, I], position] = exchange
        forward, backward = forward - exchange[0], backward - exchange[1]
        kernels[F, position] = forward - min(there, forward)
        kernels[B, position] = backward - min(back, backward)
        # Products of the weights' gradients wait for nobody: communication is in the other part first.
        kernels[W, position] = min(weights, kernels[B, position])
        kernels[I, position] = kernels[B, position] - kernels[W, position]
        collectives[:, position] = stages.duration[:, position] - kernels[:, position] - gradients[:, position]
        gradients[R, position] = min(update, model.exposed_reduce_ns(stage, plan))
        optimizer[R, position] = update - gradients[R, position]
        collectives[R, position] = 0
        assert inputs + weights == backward + exchange[1]
    return shares


def _sent_off(run: _Run) -> IntArray:
    """For each row the instant from which the message that it got last was on its way, -1 where it got none.

    Of messages that arrive together the one that was on its way for the shortest time.
    """
    stages, tasks, network, instants = run.stages, run.tasks, run.network, run.instants
    end = instants.start + tasks.duration
    arrived, made = np.full(len(end), -1, np.int64), np.full(len(end), -1, np.int64)
    for flow in range(len(network.sender)):
        reached, first, last = coverage(flow, network, stages)
        rows = tasks.arrival[slot_of(flow, network, stages) + reached]
        senders = stages.offset[network.sender[flow]] + network.backward[flow] * stages.slots
        numbers = np.array(network.numbers(flow), np.int64)
        ends = end[tasks.slot_row[senders + numbers]]
        for step in range(int((last - first).max(initial=-1)) + 1):
            position = np.minimum(first + step, last)
            at = instants.arrived[network.base[flow] + position]
            later = (at > arrived[rows]) | ((at == arrived[rows]) & (ends[position] > made[rows]))
            arrived[rows[later]], made[rows[later]] = at[later], ends[position][later]
    return made


def _lane_parts(run: _Run, rows: slice, shares: IntArray, sent: IntArray) -> dict[Part, int]:
    """The parts of a lane whose rows are given. shares: of each row. sent: see _sent_off."""
    ns: dict[Part, int] = dict.fromkeys(PARTS, 0)
    for at, part in enumerate(TASK_PARTS):
        ns[part] = int(shares[at, rows].sum())
    start = run.instants.start[rows]
    free = np.append(0, start + run.tasks.duration[rows])[:-1]
    waiting = np.where(sent[rows] < 0, 0, np.minimum(start - free, start - sent[rows]))
    ns["messages"] = int(np.maximum(waiting, 0).sum())
    ns["bubble"] = run.total_ns - sum(ns.values())
    return ns
