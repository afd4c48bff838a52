"""What groups of devices can hold: the cost of each operator on a group of each size, in whole numbers.

A plan is an order of a mini-batch, in which stages may differ in their micro-batch size, or, without a flush, a
pattern that repeats, in which they do not. Each kind is a case, for each number of copies of the pipeline, with
groups of one device each or not, and of patterns for each micro-batch size.
Docs: cost-model.md, section 11, "Groups".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from pipebench.bounds.choices import LOSS, Shares, undominated
from pipebench.bounds.memory import ancestors, ancestors_of_last
from pipebench.bounds.operators import Ways, devices_of_a_plan, divisors, most_replicas, ways
from pipebench.costs.formula import Formula
from pipebench.costs.messages import slowest
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench.domain.problem import Problem

COLUMNS = "whole_ns", "crossing_ns", "forward_ns", "back_ns", "state_bytes", "saved_bytes", "full", "cut"
"""What a row says of an operator in a stage on a group, on each of the devices of its first replica.

whole_ns: forwards and backwards of a mini-batch, and what adds up over operators of the all-reduce.
crossing_ns: forwards and input gradients alone.
forward_ns, back_ns: of one micro-batch, its forward and its input gradient; 0 with an overlap.
state_bytes: at all times. saved_bytes: of one micro-batch.
full: 1 where each micro-batch that is live holds what it saves, 0 where one of them does (the stage recomputes).
cut: the number of the stage's micro-batches in `Group.cuts`.
"""
WHOLE, CROSSING, FORWARD, BACK, STATE, SAVED, FULL, CUT = range(len(COLUMNS))
MADE_BYTES, READ_BYTES, MADE_NS, READ_NS = range(4)
"""What a tensor costs a stage that makes it, and one that reads it, where the other end is on another group.

Bytes of the buffers for a message and a gradient message, and the ns of both on their way; 0 where nobody waits.
"""
Rows = tuple[tuple[int, ...], ...]
Sent = tuple[int, int, int, int]
EXACT_STATE = 2**36
"""Below it what floats of a few states are off is less than the byte that the cost model rounds up to."""


@dataclass(frozen=True, slots=True)
class Group:
    """A number of devices that hold the same stages.

    turns: replicas of each stage that take micro-batches in turn, 1 where they share each of them.
    sizes: of each way to cut a mini-batch that a row names its micro-batch.
    cuts: of the same what each tensor costs that an operator makes.
    rows: of each operator that counts, see COLUMNS; none where no stage on the group can hold it.
    """

    devices: int
    turns: int
    sizes: tuple[int, ...]
    cuts: tuple[tuple[Sent, ...], ...]
    rows: tuple[Rows, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """Of plans.

    copies: of the pipeline. alone: each group is one device; else some group has several.
    pattern: all stages have one size of micro-batches. micro_batch: that size; 0 in an order.
    """

    copies: int
    alone: bool
    pattern: bool
    micro_batch: int

    def on(self, devices: int) -> list[tuple[int, int]]:
        """Devices and turns of every group, where a plan has so many devices."""
        return groups_of(1 if self.alone else devices // self.copies)


@dataclass(frozen=True, slots=True)
class Case(Kind):
    """What the groups of plans of a kind can hold."""

    groups: tuple[Group, ...]


class GroupTables:
    """The tables of a problem on devices of one type. last: an operator that nothing reads from."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.graph = problem.profile.graph
        self.constants = np.array([operator.constant for operator in self.graph.operators])
        self.operators = tuple(np.flatnonzero(~self.constants).tolist())
        held = Formula(problem.regime, problem.mini_batch).every_stage(most_replicas(problem)).held
        self.memory_bytes = problem.cluster.types[0].memory_bytes
        self.free_bytes = self.memory_bytes - held
        self.devices = devices_of_a_plan(problem)
        self._sync = problem.regime.mode == "sync"
        self._model = CostModel(problem)
        self.made = [tensor for tensor, producer in enumerate(self.graph.producers) if producer >= 0]
        self._levels = {slowest(problem.cluster, one, one + 1) for one in range(problem.cluster.size - 1)}
        self._cases, self._of_samples = cache(self._all_cases), cache(self._figures)
        self._state = cache(self._state_bytes)

    @cached_property
    def lasts(self) -> tuple[int, ...]:
        """Operators that nothing reads from, the ones with most operators before them first."""
        found = [operator for operator in self._at_once if operator in self.operators]
        return tuple(sorted(found, key=lambda operator: -len(self._at_once[operator])))

    def before(self, last: int) -> IntArray:
        """Of each operator whether it is before that one, or is it."""
        return np.isin(np.arange(len(self.constants)), self._at_once[last]).astype(np.int64)

    @cached_property
    def _at_once(self) -> dict[int, list[int]]:
        lasts = (operator for operator, behind in enumerate(self.graph.successors) if not behind)
        return dict(zip(lasts, ancestors_of_last(self.graph), strict=True))

    def cases(self, last: int) -> tuple[Case, ...]:
        """Every case. last: whose first forward ends at the instant at which memory is looked at."""
        before = self.before(last)
        return self._cases(
            frozenset(
                tensor
                for tensor in self._may_be_relayed
                if not self._sync or before[list(self.graph.consumers[tensor])].all()
            )
        )

    def _all_cases(self, live: frozenset[int]) -> tuple[Case, ...]:
        """live: tensors of which something is live at that instant where they are relayed."""
        return tuple(
            Case(kind.copies, kind.alone, kind.pattern, kind.micro_batch, tuple(self._groups(kind, live)))
            for kind in kinds_of(self.problem.mini_batch, self.devices, not self._sync)
        )

    def _groups(self, kind: Kind, live: frozenset[int]) -> Iterator[Group]:
        for devices, turns in kind.on(self.devices):
            found: list[list[FloatArray]] = [[] for _ in self.constants]
            cuts: list[tuple[Sent, ...]] = []
            stages = list(self.stages(kind, devices, turns))
            sent = [[self._sent(tensor, stage, kind) for stage in stages] for tensor in self.made]
            each_way = [self.rows(stages, kind.pattern, repeat) for repeat in (False, True)] if stages else []
            for at, stage in enumerate(stages):
                for repeat in (False, True) if self._repeats and (kind.pattern or stage.runs > 1) else (False,):
                    rows, fits = (table[at] for table in each_way[repeat])
                    for way in np.flatnonzero(fits).tolist():
                        found[self.ways.operator[way]].append(np.append(rows[way], at))
                cuts.append(
                    tuple(
                        self._relayed(each, at, tensor in live) if tensor in self._may_be_relayed else each[at]
                        for tensor, each in zip(self.made, sent, strict=True)
                    )
                )
            best = [_best(found[operator]) for operator in self.operators]
            named = sorted({row[CUT] for each in best for row in each})
            number = {cut: at for at, cut in enumerate(named)}
            yield Group(
                devices=devices,
                turns=turns,
                sizes=tuple(stages[cut].micro_batch for cut in named),
                cuts=tuple(cuts[cut] for cut in named),
                rows=tuple(tuple((*row[:CUT], number[row[CUT]]) for row in each) for each in best),
            )

    @property
    def _repeats(self) -> bool:
        return self.problem.pins.recompute in (None, "stage")

    def stages(self, kind: Kind, devices: int, turns: int) -> "Iterator[GroupStage]":
        """Every manner in which a stage can stand on a group."""
        pins, samples = self.problem.pins, self.problem.mini_batch // kind.copies
        for micro_batch in [kind.micro_batch] if kind.pattern else divisors(samples):
            for degree in divisors(devices):
                replicas = devices // degree
                if replicas > micro_batch if turns == 1 else replicas != turns:
                    continue
                share = replicas if turns == 1 else 1
                wrong = (
                    pins.micro_batch not in (None, micro_batch)
                    or pins.data_parallel not in (None, kind.copies * replicas)
                    or (pins.micro_batch_size is not None and pins.micro_batch_size * share != micro_batch)
                )
                if not wrong:
                    yield GroupStage(
                        kind.copies * replicas, degree, turns, micro_batch, share, samples // micro_batch
                    )

    def rows(
        self, stages: "Sequence[GroupStage]", pattern: bool, repeat: bool
    ) -> tuple[FloatArray, "np.ndarray[tuple[int, int], np.dtype[np.bool_]]"]:
        """What each way takes in each stage, without the number of the cut, shape (stages, ways, CUT); and which
        of them are possible, shape (stages, ways). repeat: a backward runs the forward again.
        """
        ways, shares = self.ways, self.shares
        figures = np.stack([self._of_samples(stage.samples) for stage in stages], axis=1)
        forward, crossing, busy, busy_crossing, saved, fits = figures
        again = forward if repeat else 0 * forward
        degree, runs, turns = np.array([(each.degree, each.runs, each.turns) for each in stages]).T[:, :, None]
        plain = ways.plain if self.problem.pins.tensor_parallel is None else False
        update = np.stack([shares.update_ns(stage.replicas) for stage in stages])
        state = np.stack([self._state(stage.replicas, stage.degree) for stage in stages])
        waited = 0 if self.problem.overlap else 1
        columns = (
            _lane_ns(busy + again, runs, turns, pattern) + update,
            _lane_ns(busy_crossing + again, runs, turns, pattern),
            waited * forward,
            waited * (crossing + again - forward),
            state,
            saved,
            np.full_like(saved, 0 if repeat else 1),
        )
        return np.stack(columns, axis=2), (fits > 0) & (plain | (ways.devices == degree))

    def _figures(self, samples: int) -> FloatArray:
        """Of each way forward, crossing, busy time of a run and of a crossing, and saved bytes, of one
        micro-batch; and whether one fits.
        """
        shares = self.shares
        forward, _, crossing, busy, busy_crossing, saved = shares.times(samples)
        peak = np.minimum(shares.peak_bytes(samples, False), shares.peak_bytes(samples, True))
        return np.stack([forward, crossing, busy, busy_crossing, saved, peak <= self.memory_bytes])

    def _state_bytes(self, replicas: int, degree: int) -> FloatArray:
        state = self.shares.device_state_bytes(replicas, degree)
        return np.floor(np.where(state < EXACT_STATE, state, state * (1 - LOSS)))

    def _sent(self, tensor: int, stage: "GroupStage", kind: Kind) -> Sent:
        """What a tensor costs a stage. The other end of an order may have micro-batches of one sample."""
        if self.constants[self.graph.producers[tensor]] or not self._levels:
            return 0, 0, 0, 0
        model, other = self._model, stage.micro_batch if kind.pattern else 1
        share = -(-other // stage.share)
        there, back = model.tensor_bytes, model.gradient_bytes
        waits = not kind.pattern and not self.problem.overlap

        def sent_ns(made: int, read: int) -> int:
            ranks = stage.share * stage.degree
            each = there(tensor, made), back(tensor, read)
            return sum(
                min(int(Formula.message_ns(level, size, ranks, ranks)) for level in self._levels) for size in each
            )

        return (
            there(tensor, stage.samples) + back(tensor, share),
            there(tensor, share) + back(tensor, stage.samples),
            sent_ns(stage.micro_batch, other) if waits else 0,
            sent_ns(other, stage.micro_batch) if waits else 0,
        )

    def _relayed(self, by_stage: list[Sent], at: int, live: bool) -> Sent:
        """What a tensor costs that another stage on the group may pass on, in micro-batches of its own.

        by_stage: of every manner of a stage; at: of the one that makes or reads the tensor. The stage that passes
        it on out of the group has the buffers; in sync it has something live where all readers are before the last
        operator (`live`).
        """
        return (
            min(sent[MADE_BYTES] for sent in by_stage) if live else 0,
            by_stage[at][READ_BYTES],
            min(sent[MADE_NS] for sent in by_stage),
            min(sent[READ_NS] for sent in by_stage),
        )

    @cached_property
    def _may_be_relayed(self) -> frozenset[int]:
        """Tensors that may pass a stage between, with routing `relay`: one with an operator that may stand there.

        It is not before the maker and not behind a reader. A constant may stand anywhere.
        """
        if self.problem.pins.virtual_stages == 1:  # there is no other stage on the group
            return frozenset()
        before = [ancestors(self.graph, operator) for operator in range(len(self.graph.operators))]
        return frozenset(
            tensor
            for tensor in self.made
            for maker in [self.graph.producers[tensor]]
            for reader in self.graph.consumers[tensor]
            if self.constants.any()
            or any(
                other not in before[maker] and reader not in before[other]
                for other in self.operators
                if other not in (maker, reader)
            )
        )

    @cached_property
    def ways(self) -> Ways:
        """On the one type of device that there is."""
        (rows,) = ways(self.problem)
        return rows

    @cached_property
    def shares(self) -> Shares:
        """What the ways take, by cut."""
        return Shares(self.problem, self.ways, ())


@dataclass(frozen=True, slots=True)
class GroupStage:
    """A stage on a group.

    replicas: in all copies. degree: devices of a replica. share: replicas that share a micro-batch.
    runs: micro-batches of a pipeline in a mini-batch.
    """

    replicas: int
    degree: int
    turns: int
    micro_batch: int
    share: int
    runs: int

    @property
    def samples(self) -> int:
        """Of a micro-batch on a replica."""
        return -(-self.micro_batch // self.share)


def _lane_ns(each: FloatArray, runs: IntArray, turns: IntArray, pattern: bool) -> FloatArray:
    """Of the first replica in a mini-batch, by what a micro-batch takes."""
    lane: FloatArray = runs * each // turns if pattern else -(-runs // turns) * each
    return lane


def kinds_of(mini_batch: int, devices: int, patterns: bool) -> list[Kind]:
    """Every kind of plan on so many devices. patterns: there are plans without a flush."""
    return [
        Kind(copies, alone, size > 0, size)
        for copies in divisors(mini_batch)
        if copies <= devices
        for alone in ((True, False) if devices // copies > 1 else (True,))
        for size in (0, *(divisors(mini_batch // copies) if patterns else ()))
    ]


def groups_of(devices: int) -> list[tuple[int, int]]:
    """Devices and turns of every group on at most so many devices."""
    return [(count, turns) for count in range(1, devices + 1) for turns in divisors(count)]


def _best(found: list[FloatArray]) -> Rows:
    """The rows that no other one of the same cut is as good as in every column."""
    if not found:
        return ()
    rows = np.stack(found)
    rows = rows[np.argsort(rows[:, CUT], kind="stable")]
    kept = undominated(np.column_stack([np.zeros(len(rows)), rows]), rows[:, CUT].astype(np.int64))
    return tuple(tuple(map(int, row)) for row in rows[kept].tolist())
