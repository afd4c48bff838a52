"""What groups of devices can hold: the cost of each operator on a group of each size, in whole numbers.

Without a flush a plan is a pattern, in which all stages have one micro-batch size, or one order of a mini-batch,
in which they may differ. Each is a case, for each number of copies of the pipeline.
Docs: cost-model.md, section 11, "Groups".
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pipebench.bounds.choices import LOSS, Shares, undominated
from pipebench.bounds.operators import Ways, devices_of_a_plan, divisors, least, most_replicas, ways
from pipebench.costs.formula import Formula
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench.domain.problem import Problem

COLUMNS = "whole_ns", "crossing_ns", "state_bytes", "live_bytes"
"""What a row says of an operator in a stage on a group, on each of the devices of its first replica.

whole_ns: forwards and backwards of a mini-batch, and what adds up over operators of the all-reduce.
crossing_ns: forwards and input gradients alone.
state_bytes: at all times. live_bytes: while a micro-batch is live.
"""
WHOLE, CROSSING, STATE, LIVE = range(len(COLUMNS))
Rows = tuple[tuple[int, ...], ...]
EXACT_STATE = 2**36
"""Below it what floats of a few states are off is less than the byte that the cost model rounds up to."""


@dataclass(frozen=True, slots=True)
class Group:
    """A number of devices that hold the same stages.

    turns: replicas of each stage that take micro-batches in turn, 1 where they share each of them.
    buffers: bytes on a device for a message of each tensor and of its gradient, where the group sends or receives
    it; of the tensors that operators make.
    rows: of each operator, see COLUMNS; none where no stage on the group can hold it.
    """

    devices: int
    turns: int
    buffers: tuple[int, ...]
    rows: tuple[Rows, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """The plans of so many copies that are patterns of one micro-batch; micro_batch 0: those that are none."""

    copies: int
    micro_batch: int
    groups: tuple[Group, ...]

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


class GroupTables:
    """The tables of a problem without a flush, on devices of one type."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        graph = problem.profile.graph
        self.constants = np.array([operator.constant for operator in graph.operators])
        self.operators = tuple(np.flatnonzero(~self.constants).tolist())
        held = Formula(problem.regime, problem.mini_batch).every_stage(most_replicas(problem)).held
        self.memory_bytes = problem.cluster.types[0].memory_bytes
        self.free_bytes = self.memory_bytes - held
        self.devices = devices_of_a_plan(problem)
        self._model = CostModel(problem)
        self._made = [tensor for tensor, producer in enumerate(graph.producers) if producer >= 0]

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Copies and micro-batch of each case."""
        return cases_of(self.problem.mini_batch, self.devices)

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """Every case."""
        return tuple(Case(copies, size, tuple(self._groups(copies, size))) for copies, size in self.sizes)

    @cached_property
    def forward_ns(self) -> IntArray:
        """Of each operator the least forward of a micro-batch; 0 where nobody waits for it."""
        return self._waited(least(self.problem, lambda rows, cut: rows.forward_ns(cut.samples)))

    @cached_property
    def back_ns(self) -> IntArray:
        """Of each operator the least input gradient of a micro-batch; 0 where nobody waits for it."""
        back = least(self.problem, lambda rows, cut: rows.crossing_ns(cut.samples) - rows.forward_ns(cut.samples))
        return self._waited(back)

    def _waited(self, ns: IntArray) -> IntArray:
        """With an overlap an operator that adds nothing to its lane may take time all the same."""
        return np.where(self.constants | (self.problem.overlap > 0), 0, ns)

    def _groups(self, copies: int, size: int) -> Iterator[Group]:
        for devices, turns in groups_of(self.devices // copies):
            rows: list[list[FloatArray]] = [[] for _ in self.constants]
            least_samples = 0
            for part in self._stages(copies, size, devices, turns):
                least_samples = min(part.samples, least_samples or part.samples)
                for operator, row in zip(part.operators.tolist(), part.rows, strict=True):
                    rows[operator].append(row)
            yield Group(
                devices=devices,
                turns=turns,
                buffers=tuple(self._buffer(tensor, least_samples, bool(size)) for tensor in self._made),
                rows=tuple(
                    ((0,) * len(COLUMNS),) if constant else _best(found)
                    for found, constant in zip(rows, self.constants, strict=True)
                ),
            )

    def _buffer(self, tensor: int, samples: int, pattern: bool) -> int:
        """Bytes for one message and its gradient. The stages of no pattern differ in micro-batch: one sample."""
        if not samples or self.constants[self.problem.profile.graph.producers[tensor]]:
            return 0
        samples = samples if pattern else 1
        return self._model.tensor_bytes(tensor, samples) + self._model.gradient_bytes(tensor, samples)

    def _stages(self, copies: int, size: int, devices: int, turns: int) -> "Iterator[_Stage]":
        """Every manner in which a stage can stand on a group."""
        pins, samples = self.problem.pins, self.problem.mini_batch // copies
        for micro_batch in [size] if size else divisors(samples):
            for degree in divisors(devices):
                replicas = devices // degree
                if replicas > micro_batch if turns == 1 else replicas != turns:
                    continue
                share = replicas if turns == 1 else 1
                each = -(-micro_batch // share)
                wrong = (
                    pins.micro_batch not in (None, micro_batch)
                    or pins.data_parallel not in (None, copies * replicas)
                    or (pins.micro_batch_size is not None and pins.micro_batch_size * share != micro_batch)
                )
                if not wrong:
                    yield self._stage(copies * replicas, degree, turns, each, samples // micro_batch, bool(size))

    def _stage(self, replicas: int, degree: int, turns: int, samples: int, runs: int, pattern: bool) -> "_Stage":
        """replicas: in all copies. degree: devices of a replica. samples: on one. runs: of a pipeline."""
        rows, shares = self._ways, self._shares
        plain = rows.plain if self.problem.pins.tensor_parallel is None else False
        fits = plain | (rows.devices == degree)
        peak = np.minimum(shares.peak_bytes(samples, False), shares.peak_bytes(samples, True))
        fits = np.flatnonzero(fits & (peak <= self.memory_bytes))
        _, _, _, busy, crossing, saved = shares.times(samples)
        update = shares.update_ns(replicas)
        state = shares.state_bytes(replicas) / (rows.devices * replicas)
        state = np.floor(np.where(state < EXACT_STATE, state, state * (1 - LOSS)))

        def lane_ns(each: FloatArray) -> FloatArray:
            lane: FloatArray = runs * each // turns if pattern else -(-runs // turns) * each
            return lane

        columns = lane_ns(busy) + update, lane_ns(crossing), state, saved
        return _Stage(samples, rows.operator[fits], np.stack(columns, axis=1)[fits])

    @cached_property
    def _ways(self) -> Ways:
        (rows,) = ways(self.problem)
        return rows

    @cached_property
    def _shares(self) -> Shares:
        return Shares(self.problem, self._ways, ())


@dataclass(frozen=True, slots=True)
class _Stage:
    """Operators in a stage of so many samples on a replica; rows: shape (operators, columns)."""

    samples: int
    operators: IntArray
    rows: FloatArray


def cases_of(mini_batch: int, devices: int) -> list[tuple[int, int]]:
    """Copies and micro-batch of each pattern, and copies and 0 of what is none."""
    return [
        (copies, size)
        for copies in divisors(mini_batch)
        if copies <= devices
        for size in (0, *divisors(mini_batch // copies))
    ]


def groups_of(devices: int) -> list[tuple[int, int]]:
    """Devices and turns of every group on at most so many devices."""
    return [(count, turns) for count in range(1, devices + 1) for turns in divisors(count)]


def _best(found: list[FloatArray]) -> Rows:
    """The rows that no other one is as good as in every column."""
    if not found:
        return ()
    rows = np.stack(found)
    kept = undominated(np.column_stack([np.zeros(len(rows)), rows]))
    return tuple(tuple(map(int, row)) for row in rows[kept].tolist())
