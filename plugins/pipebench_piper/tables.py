"""The kernel's tables: sums over downsets of what `Figures` knows."""

import numpy as np

from pipebench.algorithms.downset_table import Words, cut_edges, downset_sums, node_sets
from pipebench_piper.figures import Figures
from pipebench_piper.kernel import Memory, Tables
from pipebench_piper.released_costs import crossing_s_for_a_byte

REMEMBERED = 1 << 18
"""Stage times kept between targets (24 bytes each)."""


def tables_of(figures: Figures, rows: Words) -> Tables:
    """The tables of a problem over its sets closed under successors, sorted by the work in them.

    rows: the sets by size (algorithms.downset_table of the reversed graph).
    """
    ways = figures.ways
    each = [figures.of_way(way) for way in ways]
    widest = max(time.shape[1] for time, *_ in each)
    time, saved, fixed = (np.stack([_padded(way[part], widest) for way in each]) for part in range(3))
    count = np.stack([way[3] for way in each])
    here = np.arange(widest) < count[:, :, None]
    devices = np.array([way.devices for way in ways], np.int64)
    fastest = np.argmin(np.where(here, time, np.inf), axis=2)[:, :, None]
    least = np.min(np.where(here, time, np.inf), axis=2)
    work = downset_sums(rows, np.min(least * devices[:, None], axis=0, initial=np.inf)[None, :])[0]
    sizes = downset_sums(rows, np.ones((1, figures.nodes)))[0]
    order = np.lexsort((sizes, work))
    rows, work = np.ascontiguousarray(rows[order]), work[order]

    def sums(values: np.ndarray) -> np.ndarray:
        return np.asarray(downset_sums(rows, np.ascontiguousarray(np.where(count > 0, values, 0.0))))

    def chosen(values: np.ndarray) -> np.ndarray:
        return sums(np.take_along_axis(values, fastest, axis=2)[:, :, 0])

    def smallest(values: np.ndarray) -> np.ndarray:
        return sums(np.min(np.where(here, values, np.inf), axis=2))

    degrees = list(figures.choices)
    ends = [tuple(_padded(end, widest) for end in figures.crossing(degree)) for degree in degrees]
    edge_rows = cut_edges(rows, node_sets([tuple(edge) for edge in figures.edges], figures.nodes))
    into, out, both, uniform = [], [], [], []
    for position, degree in enumerate(degrees):
        there = np.array([len(offered) for offered in figures.choices[degree]], np.int64)
        least_in = _least(ends[position][0], there[figures.edges[:, 1]])
        least_out = _least(ends[position][1], there[figures.edges[:, 0]])
        uniform.append(
            _same(ends[position][0], there[figures.edges[:, 1]])
            and _same(ends[position][1], there[figures.edges[:, 0]])
        )
        cut = np.stack([least_in, least_out])
        crossing = _cut_sums(edge_rows, cut)
        into.append(crossing[0])
        out.append(crossing[1])
        both.append(cut.sum(axis=0))
    where = [degrees.index(way.tensor_parallel) for way in ways]
    price = [crossing_s_for_a_byte(way.data_parallel, figures.bandwidth) for way in ways]
    return Tables(
        rows=rows,
        work=work,
        cut=edge_rows,
        devices=devices,
        step=np.array([way.step for way in ways], np.int64),
        share=np.array([way.share for way in ways], np.int64),
        degree=np.array(where, np.int64),
        price=np.array(price),
        time=time,
        saved=saved,
        fixed=fixed,
        every_once=np.array([float(figures.every_stage(way).once) for way in ways]),
        every_live=np.array([float(figures.every_stage(way).per_micro_batch) for way in ways]),
        offered=count,
        fast=chosen(time),
        fast_saved=chosen(saved),
        fast_fixed=chosen(fixed),
        least_saved=smallest(saved),
        least_fixed=smallest(fixed),
        lacking=np.asarray(downset_sums(rows, (count == 0).astype(np.float64))),
        into=np.stack(into),
        out=np.stack(out),
        both=np.stack(both),
        edges=figures.edges,
        into_each=np.stack([ends[position][0] for position in where]),
        out_each=np.stack([ends[position][1] for position in where]),
        uniform=np.array(uniform),
    )


def empty_memory() -> Memory:
    """No stage time is known yet."""
    return Memory(np.full(REMEMBERED, -1, np.int64), np.zeros(REMEMBERED), np.zeros(REMEMBERED))


def _padded(values: np.ndarray, widest: int) -> np.ndarray:
    return np.pad(values, ((0, 0), (0, widest - values.shape[1])))


def _least(values: np.ndarray, count: np.ndarray) -> np.ndarray:
    here = np.arange(values.shape[1]) < np.maximum(count, 1)[:, None]
    return np.asarray(np.min(np.where(here, values, np.inf), axis=1))


def _same(values: np.ndarray, count: np.ndarray) -> bool:
    here = np.arange(values.shape[1]) < np.maximum(count, 1)[:, None]
    return bool(np.all(~here | (values == values[:, :1])))


def _cut_sums(cut: Words, values: np.ndarray) -> np.ndarray:
    """For each row of values (kinds, edges) and each downset the sum over the edges that it cuts."""
    if values.shape[1] == 0:
        return np.zeros((len(values), len(cut)))
    return np.asarray(downset_sums(cut, np.ascontiguousarray(values)))
