"""Rows of stages that come by every lane several times: other plans to anneal.

Round and round as in Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM (SC 2021), section 2.2; to and fro as the V of Qi et al., Pipeline Parallelism with Controllable Memory
(NeurIPS 2024).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.algorithms.orders.tables import ANY
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench_search.line.annealing import MOST_STAGES, Annealing, Row
from pipebench_search.line.tables import BACKWARD, FORWARD, Costs, Line


class Variety(NamedTuple):
    """What rows differ in.

    turns: stages, as a multiple of lanes; the first ones where the time is short.
    longer: so much longer than an even one a stage may take where less is sent between such stages.
    again: shares of the work, from the start on, that run again in the backward.
    in_flight: micro-batches that the first stage keeps, besides as many as there are lanes; those behind it keep
    fewer, by the work that is before them.
    """

    turns: tuple[float, ...]
    longer: tuple[float, ...]
    again: tuple[float, ...]
    in_flight: tuple[int, ...]


MANY = Variety(
    (2.0, 1.5, 3.0, 2.5, 4.0, 1.0),
    (1.1, 1.3, 1.6),
    (0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0),
    (2, 3, 4, 5, 6, 8, 12),
)
FEW = Variety((2.0, 1.0), (), (0.0, 0.5), ())
"""To tell which of many lines is worth more."""


def rows_in_loops(
    line: Line,
    annealing: Annealing,
    late: Callable[[], bool],
    variety: Variety = MANY,
    most_ns: int = ANY - 1,
) -> tuple[list[Row], int]:
    """The fastest row of each number of stages and of each way round, the fastest first; and how many were timed.

    late: whether to end. most_ns: of a row. None where every lane has to keep as many stages as it has, where
    there is one lane, and without a flush, where no lane waits for the first micro-batch.
    """
    lanes = len(line.sizes)
    if line.placed or line.costs.steady or lanes < 2:
        return [], 0
    fastest: dict[tuple[int, bool], Row] = {}
    timed = 0
    for key, stages in _every(line.costs, lanes, variety):
        if late():
            break
        timed += 1
        ns = annealing.ns(stages, min(most_ns, fastest[key].ns - 1) if key in fastest else most_ns)
        if ns is not None:
            fastest[key] = Row(stages, ns)
    return sorted(fastest.values(), key=lambda row: row.ns), timed


def _every(costs: Costs, lanes: int, variety: Variety) -> Iterator[tuple[tuple[int, bool], IntArray]]:
    """All rows that are looked at, each with its number of stages and whether they go to and fro."""
    for ends in _cuts(costs, lanes, variety):
        for to_and_fro in (False, True) if len(ends) > lanes + 1 else (False,):
            for stages in _rows(costs, ends, _lanes(len(ends), lanes, to_and_fro), variety):
                yield (len(ends), to_and_fro), stages


def _cuts(costs: Costs, lanes: int, variety: Variety) -> list[IntArray]:
    """Where stages end: of even work, or where less is sent."""
    work, crossing = work_before(costs), crossing_at(costs)
    found: dict[bytes, IntArray] = {}
    for turns in variety.turns:
        stages = min(round(turns * lanes), MOST_STAGES, len(work) - 1)
        even = np.searchsorted(work, work[-1] * np.arange(1, stages) // stages)
        inside = even[(even > 0) & (even < len(work) - 1)]
        cuts = [np.unique(np.append(inside, len(work) - 1))]
        cuts += [cheapest_cuts(work, crossing, int(work[-1] / stages * longer)) for longer in variety.longer]
        for ends in cuts:
            if len(ends):
                found.setdefault(ends.tobytes(), ends)
    return list(found.values())


def work_before(costs: Costs) -> IntArray:
    """By place, the ns of all operators before it."""
    work: IntArray = costs.sums[FORWARD, 0, 0] + costs.sums[BACKWARD, 0, 0]
    return work


def crossing_at(costs: Costs) -> IntArray:
    """By place, the ns of all messages, there and back, of tensors that are made before it and read from it on."""
    places = len(work_before(costs))
    if not costs.sent.shape[1]:
        return np.zeros(places, np.int64)
    change = np.zeros(places + 1, np.int64)
    made = np.searchsorted(costs.first_made, np.arange(len(costs.last_reader)), side="right") - 1
    read = (made >= 0) & (costs.last_reader > made)
    sent = costs.sent[:, 0].sum(axis=0)
    np.add.at(change, made[read] + 1, sent[read])
    np.add.at(change, costs.last_reader[read] + 1, -sent[read])
    crossing: IntArray = change.cumsum()[:places]
    return crossing


def _lanes(stages: int, lanes: int, to_and_fro: bool) -> list[int]:
    turns = (divmod(at, lanes) for at in range(stages))
    return [lanes - 1 - lane if to_and_fro and turn % 2 else lane for turn, lane in turns]


def _rows(costs: Costs, ends: IntArray, lanes: list[int], variety: Variety) -> Iterator[IntArray]:
    """Rows of stages (END, LANE, WAY, CAP) that differ in what runs again and what is kept in flight."""
    work = work_before(costs)
    before = work[np.append(0, ends[:-1])] / max(1, int(work[-1]))
    first = int(np.argmin(costs.recomputes))
    ways = {
        tuple(np.where(before < share, other, first).tolist())
        for other in range(len(costs.recomputes))
        for share in variety.again
    }
    caps = _in_flight(costs, before, 1 + max(lanes), variety)
    for way in sorted(ways):
        for cap in caps:
            yield np.array([ends, lanes, way, cap], np.int64).T.copy()


def _in_flight(costs: Costs, before: FloatArray, lanes: int, variety: Variety) -> list[list[int]]:
    """What stages may keep. before: the share of the work that is before each."""
    most = costs.micro_batches
    numbers = sorted({min(number, most) for number in (*variety.in_flight, lanes, 2 * lanes)})
    fewer = [np.clip(np.rint(number * (1 - before)), 1, most).astype(int).tolist() for number in numbers]
    return [list(each) for each in dict.fromkeys(map(tuple, [*fewer, [most] * len(before)]))]


@kernel
def cheapest_cuts(work: IntArray, crossing: IntArray, most_ns: int) -> IntArray:
    """The ends of runs of operators that take at most so long each, and send each other least; none without any.

    work: of all operators before a place. crossing: what is sent where a run ends at a place.
    """
    places = len(work) - 1
    sent, first = np.full(places + 1, ANY), np.zeros(places + 1, np.int64)
    sent[0] = 0
    for end in range(1, places + 1):
        here = crossing[end] if end < places else 0
        for begin in range(end - 1, -1, -1):
            if work[end] - work[begin] > most_ns:
                break
            if sent[begin] < ANY and sent[begin] + here < sent[end]:
                sent[end], first[end] = sent[begin] + here, begin
    ends = np.zeros(places, np.int64)
    if sent[places] >= ANY:
        return ends[:0]
    count, end = 0, places
    while end > 0:
        count += 1
        ends[places - count] = end
        end = first[end]
    return ends[places - count :]
