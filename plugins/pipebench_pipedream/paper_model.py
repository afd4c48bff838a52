"""PipeDream with its own cost model, the paper's or the released optimizer's, on one link level or several."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipebench.costs.quantise import FloatArray, IntArray
from pipebench_pipedream.level_search import solve_level
from pipebench_pipedream.states import States

WHOLE, FEWER = -1, -2


@dataclass(frozen=True, slots=True)
class Level:
    """Machines of one level (a machine of an outer level is all those of the level inside it)."""

    machines: int
    bandwidth_bytes_s: float


@dataclass(frozen=True, slots=True)
class Rules:
    """released: the formulas of the published code, else the paper's. charged: cuts cost time. idle: devices may
    stay idle. counts: replicas to choose from. limit_bytes: of each device, inf for none.
    """

    released: bool
    charged: bool
    idle: bool
    counts: tuple[int, ...]
    limit_bytes: float


@dataclass(frozen=True, slots=True)
class Part:
    """A stage: state `end` without state `start - 1`. replicas: of each level, the innermost first. first: the
    number of its first machine on the innermost level, counted in one replica of each outer level.
    """

    start: int
    end: int
    replicas: tuple[int, ...]
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The best partition, the stages in order, and the work."""

    bottleneck_s: float
    parts: tuple[Part, ...]
    states: int
    transitions: int


def solve(states: States, levels: Sequence[Level], rules: Rules) -> Found | None:
    """The smallest bottleneck; None where nothing fits. levels: the innermost first."""
    base = _differences(states)
    tables: list[tuple[FloatArray, IntArray, IntArray]] = []
    reached = transitions = 0
    inside = 1
    for position, level in enumerate(levels):
        outermost = position == len(levels) - 1
        best, split, last, found, tried = solve_level(
            base,
            states.activation_bytes,
            states.parameter_bytes,
            states.sent_bytes,
            states.before,
            1 if outermost else states.count + 1,
            np.array([count for count in rules.counts if count <= level.machines], dtype=np.int64),
            level.machines,
            level.bandwidth_bytes_s,
            inside,
            rules.released,
            rules.charged,
            rules.idle,
            rules.limit_bytes,
        )
        tables.append((best, split, last))
        reached, transitions = reached + found, transitions + tried
        inside = level.machines
        if not outermost:
            base = best[:, :, level.machines]
    bottleneck = float(tables[-1][0][0, -1, levels[-1].machines])
    if not np.isfinite(bottleneck):
        return None
    parts = _walk(tables, levels, len(levels) - 1, 0, states.count - 1)
    return Found(bottleneck, tuple(parts), reached, transitions)


def _differences(states: States) -> FloatArray:
    """Seconds of state j without state i - 1, shape (states + 1, states); inf where j is not behind it."""
    made = np.full((states.count + 1, states.count), np.inf)
    made[0] = states.compute_s
    made[1:] = states.compute_s[None, :] - states.compute_s[:, None]
    made[1:][np.tril_indices(states.count)] = np.inf
    return made


def _walk(
    tables: Sequence[tuple[FloatArray, IntArray, IntArray]],
    levels: Sequence[Level],
    level: int,
    start: int,
    end: int,
) -> list[Part]:
    """The stages of [start, end] on all machines of a level, in order."""
    _, split, last = tables[level]
    machines = levels[level].machines
    pieces: list[tuple[int, int, int]] = []
    j, m = end, machines
    while True:
        k = int(split[start, j, m])
        if k == FEWER:
            m -= 1
            continue
        pieces.append((start if k == WHOLE else k + 1, j, int(last[start, j, m])))
        if k == WHOLE:
            break
        m -= pieces[-1][2]
        j = k
    parts: list[Part] = []
    first = 0
    for piece_start, piece_end, replicas in reversed(pieces):
        inner = (
            _walk(tables, levels, level - 1, piece_start, piece_end)
            if level
            else [Part(piece_start, piece_end, (), ())]
        )
        parts += [Part(part.start, part.end, (*part.replicas, replicas), (*part.offsets, first)) for part in inner]
        first += replicas
    return parts
