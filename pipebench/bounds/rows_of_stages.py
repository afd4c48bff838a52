"""The recursion of the class bound: can stages in a row, each a run of consecutive operators, meet a time?"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipebench.bounds.stage_choices import Line
from pipebench.bounds.stage_figures import FAR, StageRows
from pipebench.costs.quantise import IntArray
from pipebench.domain.problem import Problem

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Messages:
    """What stages wait for at each cut, see `Line.message_ns`; all zero where messages are left out."""

    made: IntArray
    down: IntArray
    up: IntArray

    def without(self) -> "Messages":
        """The same where messages take no time."""
        return Messages(self.made, np.zeros_like(self.down), np.zeros_like(self.up))


@dataclass(frozen=True, slots=True)
class Row:
    """What a search for plans with one micro-batch reads.

    rows: ascending in `end`. starts: for each place the number of rows that end before it, shape (n + 2,).
    before, behind: the least time before the first forward of a stage that begins at a place, and behind its last
    input gradient, `Line.least_before`. work: the least device time of the operators before each place, of one
    mini-batch.
    """

    problem: Problem
    micro_batch: int
    places: int
    rows: StageRows
    messages: Messages
    before: IntArray
    behind: IntArray
    work: IntArray

    @property
    def micro_batches(self) -> int:
        """Of a mini-batch."""
        return self.problem.mini_batch // self.micro_batch


@dataclass(frozen=True, slots=True)
class Frame:
    """What all searches for plans with one micro-batch share, as in `Row`."""

    line: Line
    micro_batch: int
    messages: Messages
    before: IntArray
    behind: IntArray
    work: IntArray

    @classmethod
    def of(cls, line: Line, micro_batch: int) -> "Frame":
        """That of one micro-batch size."""
        before, behind = line.least_before(micro_batch)
        messages = Messages(*line.message_ns(micro_batch))
        return cls(line, micro_batch, messages, before, behind, line.least_work(micro_batch))

    def row(self, most_ns: int = FAR, parts: int = 0, memory: bool = True) -> Row:
        """The search for plans of at most that time, see `Line.within`."""
        rows = self.line.rows(self.micro_batch, self.line.within(self.work, most_ns, parts, memory))
        return Row(
            self.line.problem, self.micro_batch, self.line.places, rows, self.messages, self.before, self.behind,
            self.work,
        )  # fmt: skip


def possible(row: Row, time_ns: int) -> bool:
    """Whether the conditions leave a plan that takes at most `time_ns`, see `docs/explanation/class-bounds.md`.

    From the last operator to the first: the least of each figure of `Tails` over all ways to put the operators
    behind a place into stages on a number of devices.
    """
    size, places = row.problem.cluster.size, row.places
    if row.problem.regime.mode == "async":
        time_ns -= time_ns % row.micro_batches
    rows = _that_fit(row, time_ns)
    starts = np.searchsorted(rows.end, np.arange(places + 2))
    single, other = Tails.unknown(size + 1, places + 1), Tails.unknown(size + 1, places + 1)
    for figure in other:
        figure[0, places] = 0
    carried = _carried(row, time_ns)
    fewest = np.maximum(-(-row.work // max(1, time_ns)), np.arange(places + 1) > 0)
    for used in range(size):
        later = single.at(used), other.at(used)
        known = np.minimum(later[0].pass_ns, later[1].pass_ns) < FAR
        reached = np.flatnonzero(known)
        if not len(reached):
            continue
        span = slice(int(starts[reached[0]]), int(starts[reached[-1] + 1]))
        left = size - used - rows.devices[span]
        possibly = np.flatnonzero(known[rows.end[span]] & (left >= fewest[rows.first[span]]))
        part, left = rows.chosen(possibly + span.start), left[possibly]
        new, fits = _extended(row, part, left, used, later, carried, time_ns)
        alone = (part.sharers == 1) & (part.turns == 1)
        for flags, least in ((fits & alone, single), (fits & ~alone, other)):
            which = np.flatnonzero(flags)
            if len(which):
                at = used + part.devices[which], part.first[which]
                for figure, found in zip(least, new.at(which), strict=True):
                    np.minimum.at(figure, at, found)
    met: Flags = np.minimum(single.pass_ns[:, 0], other.pass_ns[:, 0]) < FAR
    wanted = _devices(row.problem)
    return bool(met[wanted] if wanted else met.any())


class Tails(NamedTuple):
    """Of all stages behind a place, the least ns; `FAR` where they cannot be there.

    pass_ns: one micro-batch, from the start of its first forward to the end of its last input gradient (in async
    of its last backward).
    crossing_ns: all micro-batches, from the first forward to the last input gradient of the first of these stages.
    whole_ns: from the same first forward to the end of every task of these stages.
    """

    pass_ns: IntArray
    crossing_ns: IntArray
    whole_ns: IntArray

    @classmethod
    def unknown(cls, *shape: int) -> "Tails":
        """Nothing is known to be possible."""
        return cls(*(np.full(shape, FAR, np.int64) for _ in cls._fields))

    def at(self, where: "int | IntArray") -> "Tails":
        """The figures at an index of the first axis."""
        return Tails(*(each[where] for each in self))

    def least(self, other: "Tails") -> "Tails":
        """The least of each figure."""
        return Tails(*map(np.minimum, self, other))

    def where(self, which: Flags) -> "Tails":
        """The figures where the flag is set, else `FAR`."""
        return Tails(*(np.where(which, each, FAR) for each in self))


def _extended(
    row: Row, part: StageRows, left: IntArray, used: int, later: tuple[Tails, Tails], carried: Flags, time_ns: int
) -> tuple[Tails, Flags]:
    """The figures with one stage more in front, and whether the time may be met with it.

    left: devices for the stages before it. used: by those behind. later: of these, `single` and other. carried: at
    which cuts one link has time for all messages.
    """
    messages = row.messages
    sends = (part.end < row.places) & (messages.made[part.end] >= part.first)
    linked = sends & (part.turns == 1)
    single, other = later[0].at(part.end).where(~linked | carried[part.end]), later[1].at(part.end)
    rank = np.minimum(part.sharers, used)
    down = np.where(sends, messages.down[rank, part.end], 0)
    up = np.where(sends, messages.up[rank, part.end], 0)
    if row.problem.regime.mode == "async":
        alone, apart = single.pass_ns + down + up, other.pass_ns + down + up
        # A message that takes no time is on no link: the other one meets nothing there.
        both_ways = linked & (down > 0) & (up > 0)
        return _patterned(row, part, (alone, apart), np.where(both_ways, down + up, 0), time_ns)
    behind = single.least(other)
    # One micro-batch between the end of its forward and the start of its backward.
    away = behind.pass_ns + down + up
    crossing, whole = _windows(part, away)
    last = part.end == row.places
    back = np.where(last, 0, behind.crossing_ns + down + up)
    crossing = np.maximum(crossing, back + part.crossing)
    whole = np.maximum(whole, back + part.both + part.update)
    whole = np.maximum(whole, np.where(last, 0, behind.whole_ns + down + part.forward))
    previous = (part.first > 0) & (messages.made[part.first] == part.first - 1)
    rank = np.minimum(part.sharers, left)
    before = row.before[left, part.first] + np.where(previous, messages.down[rank, part.first], 0)
    after = row.behind[left, part.first] + np.where(previous, messages.up[rank, part.first], 0)
    fits = (before + whole <= time_ns) & (before + crossing + after <= time_ns) & (behind.pass_ns < FAR)
    return Tails(away + part.crossing, crossing, whole), fits


def _patterned(
    row: Row, part: StageRows, away: tuple[IntArray, IntArray], sent: IntArray, time_ns: int
) -> tuple[Tails, Flags]:
    """The same of a pattern that repeats: whether memory holds the micro-batches that are live at this pace.

    away: the least ns between forward and backward where one link leads to the next stage, and elsewhere. sent: ns
    of that link for a micro-batch, 0 where it has messages one way alone.
    """
    period = max(1, time_ns // row.micro_batches)
    alone, elsewhere = away
    if row.problem.cluster.link_mode == "half" and not splits_messages(row.problem):
        alone = _without_collision(alone, sent, period)
    lane = period * part.turns
    gone = np.minimum(alone, elsewhere)
    stay = gone + part.both
    if not row.problem.overlap:
        stay = _without_collision(stay, part.both, lane)
    most = (2**62 - 1) // int(lane.max(initial=1))
    fits: Flags = (gone < FAR) & ((part.live > most) | (stay <= np.minimum(part.live, most) * lane))
    return Tails(stay, 0 * stay, 0 * stay), fits


def _without_collision(length: IntArray, busy: IntArray, period: "int | IntArray") -> IntArray:
    """The least length that is not below `length`, of what starts and ends with tasks of `busy` ns in all.

    Both are tasks of one lane or link. They would overlap where the length is less than `busy` above a multiple of
    the period.
    """
    rest = length % period
    return np.where((rest > 0) & (rest < busy), length - rest + busy, length)


def _windows(part: StageRows, away: IntArray) -> tuple[IntArray, IntArray]:
    """The least ns from the first forward of each stage to its last input gradient, and to the end of its tasks.

    away: the least ns of a micro-batch between its forward and its backward.
    """
    forward, backward, gradient, runs = part.forward, part.backward, part.input_gradient, part.runs
    rounds = -(-runs // part.live)
    odd = runs - 1 - (rounds - 1) * np.minimum(part.live, runs)
    found: list[IntArray] = []
    for busy, last, each in (
        (part.busy_crossing, gradient, part.crossing),
        (part.busy, backward, part.both),
    ):
        stay = away + each
        window = np.maximum(busy, forward + away + runs * last)
        window = np.maximum(window, runs * forward + away + last)
        staggered = rounds * stay + odd * np.maximum(forward, last)
        found.append(np.maximum(window, np.minimum(staggered, (rounds + 1) * stay)))
    return found[0], found[1] + part.update


def _devices(problem: Problem) -> int:
    """How many devices a plan takes where all degrees are pinned, else 0."""
    pins = problem.pins
    if pins.pipeline is None or pins.data_parallel is None or pins.tensor_parallel is None:
        return 0
    return min(problem.cluster.size, pins.pipeline * pins.data_parallel * pins.tensor_parallel)


def _that_fit(row: Row, time_ns: int) -> StageRows:
    """The stages whose lane is not too busy, whatever stands before and behind them."""
    rows = row.rows
    if row.problem.regime.mode == "async":
        return rows.chosen(rows.busy <= time_ns * rows.turns)
    return rows.chosen(rows.busy + rows.update + row.before[-1][rows.first] <= time_ns)


def splits_messages(problem: Problem) -> bool:
    """Whether ranks of a replica share out what they send, so that messages may be shorter than counted."""
    step = problem.regime.step
    return step is not None and step.splits_messages


def _carried(row: Row, time_ns: int) -> Flags:
    """At which cuts one link between two lanes has time for all micro-batches of a mini-batch."""
    down, up = row.messages.down[1], row.messages.up[1]
    match row.problem.cluster.link_mode:
        case "half":
            load = down + up
        case "full":
            load = np.maximum(down, up)
        case "delay":
            load = np.zeros_like(down)
    if splits_messages(row.problem):
        load = np.zeros_like(down)
    carried: Flags = row.micro_batches * load <= time_ns
    return carried
