"""What each callable of a descriptor returns: its type, and how a stranger's value becomes exactly that."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pipebench.bench.plugin_results import (
    exact_cluster,
    exact_graph,
    exact_profile,
    exact_result,
    exact_schedule,
    exact_trace,
    exact_value,
)
from pipebench.domain.artefact import Cell, Claim, Figure, Finding, Result
from pipebench.domain.cluster import Cluster
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import Profile
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import Schedule
from pipebench.domain.trace import Trace


@dataclass(frozen=True, slots=True)
class ResultKind:
    """type: of the result. exact: brings a value to it, named by the component; raises PipebenchError."""

    type: Any
    exact: Callable[[str, object], Any]


def _profile_of(slot: str) -> ResultKind:
    return ResultKind(Profile, lambda name, value: exact_profile(f"{slot} {name!r}", value))


def _names(name: str, value: object) -> tuple[str, ...]:
    texts = tuple(map(str, cast(Sequence[object], value)))
    return cast(tuple[str, ...], exact_value(f"profiler {name!r}", texts, tuple[str, ...]))


KINDS: dict[str, ResultKind] = {
    "planners": ResultKind(PlanResult, exact_result),
    "schedulers": ResultKind(Schedule, exact_schedule),
    "executors": ResultKind(Trace, exact_trace),
    "profilers": _profile_of("profiler"),
    "models": ResultKind(OperatorGraph, exact_graph),
    "formats": _profile_of("format"),
}
PARTS: dict[str, ResultKind] = {
    "links": ResultKind(Cluster, lambda name, value: exact_cluster(f"profiler {name!r}", value)),
    "devices": ResultKind(tuple[str, ...], _names),
}
"""Of a profiler."""


def _of_artefact(kind: Any) -> ResultKind:
    return ResultKind(kind, lambda name, value: exact_value(f"artefact {name!r}", value, kind))


METHODS: dict[str, ResultKind] = {
    "claims": _of_artefact(tuple[Claim, ...]),
    "suite": _of_artefact(tuple[Cell, ...]),
    "judge": _of_artefact(list[Finding]),
    "series": _of_artefact(Figure),
}
"""Of what an artefact loads (hooks.reproduction.Reproduction)."""
METHOD_ARGUMENTS: dict[str, Any] = {
    "claims": tuple[()],
    "suite": tuple[bool, tuple[str, ...]],
    "judge": tuple[tuple[Result, ...]],
    "series": tuple[tuple[Result, ...]],
}


def result_kind(slot: str, part: str = "") -> ResultKind:
    """What a callable of a component returns. part: as of a `HookCall`."""
    if slot == "profilers" and part in PARTS:
        return PARTS[part]
    return METHODS[part] if slot == "artefacts" else KINDS[slot]
