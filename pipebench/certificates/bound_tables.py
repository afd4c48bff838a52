"""The tables that prove a bound: for each operator the choices that may be its least, in whole nanoseconds."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from pipebench.bounds import TimeBound
from pipebench.bounds.by_group.groups import GroupsProof, groups_proof
from pipebench.bounds.by_group.layers import LayersProof, layers_proof
from pipebench.bounds.links import LinksProof, links_proof
from pipebench.bounds.operators import (
    Cut,
    Ways,
    busy_ns,
    crossing_ns,
    cuts,
    devices_of_a_plan,
    every_stage_ns,
    freely_split,
    least_part,
    update_ns,
    ways,
)
from pipebench.bounds.proof import time_proof
from pipebench.bounds.shared import shared
from pipebench.certificates.bound_kinds import COLUMNS
from pipebench.costs.quantise import IntArray
from pipebench.domain.problem import Problem

SHARED = "reduce", "fill", "memory"
"""Kinds of bounds on what all operators share."""


def bound_part(problem: Problem, bound: TimeBound, split: bool) -> dict[str, Any]:
    """The part `bound` of a certificate: the argument that gives the bound, with its tables.

    split: the bound is one over plans that cut operators among devices as well.
    """
    if bound.kind in (*SHARED, "links", "groups", "layers"):
        proof = time_proof(problem) if bound.kind in SHARED else _packed(problem, bound)
        assert proof is not None
        said = {"kind": bound.kind, "over": "plans of whole operators", "proof": proof.document()}
        if isinstance(proof, GroupsProof) and proof.several is not None:
            said["several"] = {"proof": proof.several.document()}
        return {name: json.loads(json.dumps(each)) for name, each in said.items()}
    index = problem.profile.graph.index
    counted = freely_split(problem) if split else problem
    part: dict[str, Any] = {
        "kind": bound.kind,
        "over": "all plans" if split else "plans of whole operators",
        "columns": list(COLUMNS[bound.kind]),
        "choices": list(_choices(counted, bound.kind, split)),
    }
    if bound.kind != "operator":
        part["every_stage_ns"] = every_stage_ns(counted)
    if bound.kind == "work":
        part["devices"] = devices_of_a_plan(counted)
    else:
        part["operator"] = index[bound.operator]
    return part


def _packed(problem: Problem, bound: TimeBound) -> LinksProof | GroupsProof | LayersProof | None:
    """The proof from wholes on links or groups of devices that is above all bounds that were found before it."""
    names = list(bound.parts)
    found = max(bound.parts[kind] for kind in names[: names.index(bound.kind)])
    if bound.kind == "groups":
        return groups_proof(problem, every_stage_ns(problem), found)
    proof_of = links_proof if bound.kind == "links" else layers_proof
    parted = shared(problem)
    return proof_of(problem, parted, found) if parted else None


def _choices(problem: Problem, kind: str, split: bool) -> Iterator[list[Any]]:
    """Rows of bound_kinds.Choice: operator, way, device type, devices, runs, samples, replicas, turns, then ns."""
    found: list[tuple[str, Ways, Cut, IntArray, IntArray, IntArray]] = []
    names = list(dict.fromkeys(problem.cluster.devices))
    for name, rows in zip(names, ways(problem), strict=True):
        for cut in cuts(problem):
            fits = np.flatnonzero(rows.devices * cut.replicas <= problem.cluster.size)
            ns = _columns(problem, rows, cut, split and kind != "work")  # device time is that of whole operators
            columns = np.stack([ns[column] for column in COLUMNS[kind]], axis=1)
            found.append(
                (name, rows, cut, fits, columns, np.stack(_compared(problem, rows, cut, kind, ns), axis=1))
            )
    for operator in range(len(problem.profile.graph.operators)):
        each = [
            (number, row)
            for number, (_, rows, _, fits, _, _) in enumerate(found)
            for row in fits[rows.operator[fits] == operator].tolist()
        ]
        values = np.array([found[number][5][row] for number, row in each], dtype=np.int64)
        for position in undominated(values):
            number, row = each[position]
            name, rows, cut, _, columns, _ = found[number]
            way = "plain" if rows.plain[row] else "alternative"
            cut_of = int(rows.devices[row]), cut.runs, cut.samples, cut.replicas, cut.turns
            yield [operator, way, name, *cut_of, *columns[row].tolist()]


def _columns(problem: Problem, rows: Ways, cut: Cut, split: bool) -> dict[str, IntArray]:
    """What each way costs under a cut, by the names of bound_kinds.COLUMNS (bounds.time has the proofs)."""
    forward, once = rows.forward_ns(cut.samples), rows.run_ns(cut.samples)
    if split:
        forward, once = (least_part(problem, rows, cut, whole) for whole in (forward, once))
        update = np.full(len(forward), every_stage_ns(problem), dtype=np.int64)
    else:
        update = np.broadcast_to(update_ns(problem, rows, cut), forward.shape)
    return {
        "busy": busy_ns(problem, rows, cut, split),
        "update": update,
        "forward": forward,
        "once": once,
        "crossing": crossing_ns(problem, rows, cut, split),
        "busy_crossing": busy_ns(problem, rows, cut, split, crossing=True),
    }


def _compared(problem: Problem, rows: Ways, cut: Cut, kind: str, ns: dict[str, IntArray]) -> list[IntArray]:
    """What the proof takes minima of: a choice that is not less in any of them is needed by no proof."""
    if kind == "work":
        return [cut.computed * rows.devices * ns["busy"]]
    lane = cut.busiest_ns(problem, ns["busy"]) + ns["update"]
    if kind == "operator":
        return [lane]
    alone = [ns[name] for name in ("busy", "forward", "once", "crossing", "busy_crossing")]
    return [lane, cut.busiest_ns(problem, ns["busy_crossing"]), *alone]


def undominated(values: IntArray) -> list[int]:
    """The rows that no other row equals or undercuts in every column; values: shape (rows, columns)."""
    _, first = np.unique(values, axis=0, return_index=True)
    kept: list[int] = []
    for row in first.tolist():  # ascending: what dominates a row stands before it
        if not kept or not (values[kept] <= values[row]).all(axis=1).any():
            kept.append(row)
    return kept
