"""PipeDream with its own cost model, the paper's or the released optimizer's, on one link level or several."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench_pipedream.level_search import SLACK, LevelTable, LevelTables, Window, empty_table, solve_level
from pipebench_pipedream.paper_costs import fits, slower_of_cuts, stage_s
from pipebench_pipedream.states import States, Words, leads, line_of_states, states_along

WHOLE, FEWER = -1, -2


@dataclass(frozen=True, slots=True)
class Level:
    """Machines of one level (a machine of an outer level is all those of the level inside it)."""

    machines: int
    bandwidth_bytes_s: float


@dataclass(frozen=True, slots=True)
class ModelRules:
    """The rules of a model.

    released: the formulas of the published code, else the paper's.
    charged: cuts cost time.
    idle: devices may stay idle.
    counts: replicas to choose from.
    limit_bytes: of each device, inf for none.
    """

    released: bool
    charged: bool
    idle: bool
    counts: tuple[int, ...]
    limit_bytes: float


@dataclass(frozen=True, slots=True)
class LevelPart:
    """A stage: state `end` without state `start - 1`.

    replicas: of each level, the innermost first.
    first: number of its first machine on the innermost level, counted in one replica of each outer level.
    """

    start: int
    end: int
    replicas: tuple[int, ...]
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LevelSolution:
    """The best partition, the stages in order, and the work."""

    bottleneck_s: float
    parts: tuple[LevelPart, ...]
    states: int
    transitions: int


def solve(states: States, levels: Sequence[Level], rules: ModelRules) -> LevelSolution | None:
    """The smallest bottleneck; None where nothing fits. levels: the innermost first."""
    alone = len(levels) == 1
    base = states.compute_s[None, :] if alone else _differences(states)
    tables: list[LevelTable] = []
    reached = transitions = 0
    inside = 1
    for position, level in enumerate(levels):
        outermost = position == len(levels) - 1
        window = _narrow_window(states, level, rules) if alone else _whole_window(states, level)
        table, found, tried = _solve_level(states, base, window, level, rules, outermost, inside)
        tables.append(table)
        reached, transitions = reached + found, transitions + tried
        inside = level.machines
        if not outermost:
            base = np.ascontiguousarray(table.best[:, :, level.machines])
    bottleneck = float(tables[-1].best[0, -1, levels[-1].machines])
    if not np.isfinite(bottleneck):
        return None
    parts = _walk_levels(tables, levels, len(levels) - 1, 0, states.count - 1)
    return LevelSolution(bottleneck, tuple(parts), reached, transitions)


def _solve_level(
    states: States,
    base: FloatArray,
    window: Window,
    level: Level,
    rules: ModelRules,
    outermost: bool,
    inside: int,
) -> tuple[LevelTable, int, int]:
    tables = LevelTables(
        base=base,
        activations=states.activation_bytes,
        parameters=states.parameter_bytes,
        sent=states.sent_bytes,
        before=states.before,
        counts=np.array([count for count in rules.counts if count <= level.machines], dtype=np.int64),
    )
    table = empty_table(1 if outermost else states.count + 1, states.count, level.machines)
    reached, transitions = solve_level(
        tables,
        window,
        table,
        level.bandwidth_bytes_s,
        inside,
        rules.released,
        rules.charged,
        rules.idle,
        rules.limit_bytes,
    )
    return table, reached, transitions


def _whole_window(states: States, level: Level) -> Window:
    return Window(inf, np.ones(states.count, np.int64), np.full(states.count, level.machines, np.int64))


FEW_STATES = 64
"""Of a line of states, for the first bound: as many take a moment on any number of machines."""


def _narrow_window(states: States, level: Level, rules: ModelRules) -> Window:
    """Bottlenecks up to one that is reached along a line of states, first of a few of them, then of all."""
    window = _whole_window(states, level)
    line = line_of_states(states)
    few = line[np.linspace(0, len(line) - 1, min(len(line), FEW_STATES)).astype(np.int64)]
    for positions in (few, line):
        along = states_along(states, positions)
        here = Window(window.most, window.fewest[positions], window.widest[positions])
        table, _, _ = _solve_level(along, along.compute_s[None, :], here, level, rules, True, 1)
        most = float(table.best[0, -1, level.machines])
        if most < window.most:
            window = _window_below(states, level, most)
    return window


def _window_below(states: States, level: Level, most: float) -> Window:
    """On how many machines a state and what is behind it can both keep to `most`, by their compute alone."""
    compute = states.compute_s * (1 - SLACK)
    behind = states.compute_s[-1] * (1 - SLACK) - states.compute_s
    with np.errstate(divide="ignore", invalid="ignore"):
        fewest, rest = (np.nan_to_num(np.ceil(seconds / most)) for seconds in (compute, behind))
    widest = np.minimum(level.machines - rest, level.machines).astype(np.int64)
    fewest = np.maximum(fewest, 1).astype(np.int64)
    return Window(most, np.where(fewest > widest, level.machines + 1, fewest), widest)


def _differences(states: States) -> FloatArray:
    """Seconds of state j without state i - 1, shape (states + 1, states); inf where j is not behind it."""
    made = np.full((states.count + 1, states.count), np.inf)
    made[0] = states.compute_s
    made[1:] = states.compute_s[None, :] - states.compute_s[:, None]
    made[1:][np.tril_indices(states.count)] = np.inf
    return made


def _walk_levels(
    tables: Sequence[LevelTable],
    levels: Sequence[Level],
    level: int,
    start: int,
    end: int,
) -> list[LevelPart]:
    """The stages of [start, end] on all machines of a level, in order."""
    split, last = tables[level].split, tables[level].last
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
    parts: list[LevelPart] = []
    first = 0
    for piece_start, piece_end, replicas in reversed(pieces):
        inner = (
            _walk_levels(tables, levels, level - 1, piece_start, piece_end)
            if level
            else [LevelPart(piece_start, piece_end, (), ())]
        )
        parts += [
            LevelPart(part.start, part.end, (*part.replicas, replicas), (*part.offsets, first)) for part in inner
        ]
        first += replicas
    return parts


NONE = 2**40
PRECISION = 1e-13


@kernel
def within(  # pragma: no cover - compiled
    target: float,
    compute: FloatArray,
    activations: FloatArray,
    parameters: FloatArray,
    sent: FloatArray,
    before: Words,
    counts: IntArray,
    machines: int,
    bandwidth: float,
    released: bool,
    charged: bool,
    limit: float,
) -> tuple[IntArray, IntArray, IntArray, FloatArray, int, int]:
    """fewest[j, m]: least number of stages for state j on exactly m machines, none slower than `target`.

    Arrays of shape (states,), before (states, words), counts ascending. Returns fewest, the state before the last
    stage (-1: one stage), its replicas, its time (each (states, machines+1)), states reached, transitions tried.
    """
    n = before.shape[0]
    fewest = np.full((n, machines + 1), NONE)
    split = np.full((n, machines + 1), -1)
    last = np.zeros((n, machines + 1), dtype=np.int64)
    slowest = np.zeros((n, machines + 1))
    reached = 0
    transitions = 0
    for j in range(n):
        for k in range(-1, j):
            if k >= 0 and not leads(before, k, j):
                continue
            stage_parameters = parameters[j] - (parameters[k] if k >= 0 else 0.0)
            stage_compute = compute[j] - (compute[k] if k >= 0 else 0.0)
            held = activations[j] - (activations[k] if k >= 0 else 0.0) + stage_parameters
            for d in counts:
                if d > machines:
                    break
                stage = stage_s(stage_compute, stage_parameters, d, bandwidth, 1, released)
                if charged and k >= 0:
                    leaving = sent[j] if j < n - 1 else 0.0
                    stage = slower_of_cuts(stage, sent[k], leaving, d, bandwidth, released)
                if stage > target:
                    continue
                for m in range(d, machines + 1):
                    if (k < 0) != (m == d) or not fits(held, machines - m, d, released, limit):
                        continue
                    transitions += 1
                    stages = 1 if k < 0 else fewest[k, m - d] + 1
                    if stages < fewest[j, m]:
                        fewest[j, m] = stages
                        split[j, m] = k
                        last[j, m] = d
                        slowest[j, m] = stage
        for m in range(machines + 1):
            if fewest[j, m] < NONE:
                reached += 1
    return fewest, split, last, slowest, reached, transitions


def bisect(states: States, level: Level, rules: ModelRules) -> LevelSolution | None:
    """The smallest bottleneck within one part in 10^13; each success lowers the top to what it reached."""
    counts = np.array([count for count in rules.counts if count <= level.machines], dtype=np.int64)
    reached = transitions = 0
    found: tuple[float, tuple[LevelPart, ...]] | None = None
    low, high, target = 0.0, np.inf, np.inf
    while low < high * (1 - PRECISION):
        fewest, split, last, slowest, states_reached, tried = within(
            target,
            states.compute_s,
            states.activation_bytes,
            states.parameter_bytes,
            states.sent_bytes,
            states.before,
            counts,
            level.machines,
            level.bandwidth_bytes_s,
            rules.released,
            rules.charged,
            rules.limit_bytes,
        )
        reached, transitions = reached + states_reached, transitions + tried
        if fewest[-1, level.machines] < NONE:
            found = _walk_target(split, last, slowest, level.machines)
            high = found[0]
        elif found is None:
            return None
        else:
            low = target
        target = (low + high) / 2
    return LevelSolution(high, found[1], reached, transitions) if found else None


def _walk_target(
    split: IntArray, last: IntArray, slowest: FloatArray, machines: int
) -> tuple[float, tuple[LevelPart, ...]]:
    bottleneck, end, parts = 0.0, len(split) - 1, []
    while end >= 0:
        before, replicas = int(split[end, machines]), int(last[end, machines])
        bottleneck = max(bottleneck, float(slowest[end, machines]))
        machines -= replicas
        parts.append(LevelPart(before + 1, end, (replicas,), (machines,)))
        end = before
    return bottleneck, tuple(reversed(parts))
