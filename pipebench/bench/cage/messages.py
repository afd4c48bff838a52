"""A call of a component's code and its reply, as values that cross from process to process."""

from typing import Any, Literal

from pipebench.domain.graph import OperatorGraph
from pipebench.domain.placement import PlacementKind
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import Schedule
from pipebench.domain.value import Value

Ending = Literal[
    "returned",
    "infeasible",
    "unsupported",
    "deadline",
    "invalid",
    "untrusted",
    "refused",
    "undeclared",
    "memory",
    "failed",
]


class HookCall(Value, frozen=True, kw_only=True):
    """One call of one component.

    part: `links` or `devices` of a profiler, a method of what an artefact loads; empty for the callable itself.
    options: by name.
    problem, plan, schedule, graph, data: what the callable takes.
    arguments: of the method of an artefact, encoded.
    request_kind, request: the context's request, encoded.
    seed, deadline_s, scheduler, placements, trusted: as in the context.
    """

    slot: str
    name: str
    part: str = ""
    options: dict[str, Any] = {}
    problem: Problem | None = None
    plan: Plan | None = None
    schedule: Schedule | None = None
    graph: OperatorGraph | None = None
    data: bytes | None = None
    arguments: bytes = b""
    request_kind: Literal["none", "text", "profile", "links"] = "none"
    request: bytes = b""
    seed: int = 0
    deadline_s: float | None = None
    scheduler: str = ""
    placements: tuple[PlacementKind, ...] = ()
    trusted: tuple[str, ...] = ()


class HookReply(Value, frozen=True, kw_only=True):
    """How a call ended.

    value: what was returned, encoded.
    text, hint, exit_code, claimed_s: of the error.
    code, instead: what a file names, and what to do instead, where that is the error.
    notices, counters: of the context.
    """

    ending: Ending
    value: bytes = b""
    text: str = ""
    hint: str | None = None
    exit_code: int = 0
    claimed_s: float | None = None
    code: tuple[str, ...] = ()
    instead: str = ""
    notices: tuple[str, ...] = ()
    counters: dict[str, int] = {}


class Progress(Value, frozen=True, kw_only=True):
    """What a component reports while it runs. done: in [0, 1]."""

    done: float
    message: str


class OptionsRequest(Value, frozen=True, kw_only=True):
    """Options of a component, to be checked by its own class."""

    slot: str
    name: str
    values: dict[str, Any]
