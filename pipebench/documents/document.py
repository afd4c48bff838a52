"""JSON documents: a kind, a version number and the value; errors name the path inside the document."""

from typing import Any, TypeVar, cast

import msgspec

from pipebench.documents.decoding import (
    MALFORMED,
    bounded_json,
    collector_paused,
    explanation,
    require_elements,
    require_unique_keys,
    without_mark,
)
from pipebench.documents.fields import described
from pipebench.documents.naming import in_words, taken_by
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import InvalidValue, PipebenchError, unknown
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.limits import MOST_UNTYPED_ELEMENTS
from pipebench.domain.placement import PlacementKind, placement_kind_of
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Profile
from pipebench.domain.result import ProgramResult
from pipebench.domain.row import Row, require_possible
from pipebench.domain.schedule import Schedule
from pipebench.domain.trace import Trace
from pipebench.domain.value import Value
from pipebench.domain.verdict import Verdict

VERSION = 1
MODEL_KEYS = {"architectures", "model_type", "hidden_size"}
"""Of a Hugging Face config.json, which people give where a document is due."""
T = TypeVar("T")


class PlannedProblem(Value, frozen=True, kw_only=True):
    """A plan file: the plan with the problem that it solves, its schedule and who made it.

    problem: that the plan solves.
    plan: the stages and their devices.
    schedule: the order of tasks; None leaves it to a scheduler.
    scheduler: that made the schedule.
    planner: that made the plan.
    """

    problem: Problem
    plan: Plan
    schedule: Schedule | None = None
    scheduler: str = ""
    planner: str = ""


class Rows(Value, frozen=True, kw_only=True):
    """The rows of one comparison; cached: the keys of those that a store held already; best: for each problem the
    fastest of them that fits.

    What `compare --json` prints is this without an envelope, and is read as well.
    """

    rows: tuple[Row, ...]
    cached: tuple[str, ...] = ()
    best: tuple[Row, ...] = ()


KINDS: dict[str, Any] = {
    "graph": OperatorGraph,
    "profile": Profile,
    "cluster": Cluster,
    "problem": Problem,
    "plan": PlannedProblem,
    "bare-plan": Plan,
    "result": ProgramResult,
    "schedule": Schedule,
    "trace": Trace,
    "verdict": Verdict,
    "rows": Rows,
}


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    pipebench: str
    version: int
    content: msgspec.Raw


class _BareRows(msgspec.Struct, forbid_unknown_fields=True):
    rows: msgspec.Raw
    cached: msgspec.Raw = msgspec.Raw(b"[]")
    best: msgspec.Raw = msgspec.Raw(b"[]")


def encode(kind: str, value: Any, indent: int = 0) -> bytes:
    """The document of a value, one line a record when indent is above zero."""
    wrapped = {"pipebench": kind, "version": VERSION, "content": value}
    data = msgspec.json.encode(wrapped)
    return msgspec.json.format(data, indent=indent) if indent else data


def kind_of(data: bytes, source: str) -> str:
    """The kind that a document names. Raises PipebenchError when it is no pipebench document."""
    return _open(data, source).pipebench


def decode(data: bytes, kind: str, source: str) -> Any:
    """The value of a document of that kind; source names the file in errors.

    Raises PipebenchError: malformed JSON, another kind, a newer version, or a field that is wrong (with its
    path inside the document).
    """
    text = bounded_json(data, source)
    envelope = _open(text, source)
    if envelope.pipebench != kind:
        found = envelope.pipebench
        raise PipebenchError(f"{source}: holds {in_words(found)}, not {in_words(kind)}", taken_by(found))
    return _value(envelope, text, source)


def decode_any(data: bytes, source: str) -> tuple[str, Any]:
    """The kind and the value of a document of any kind. Raises PipebenchError as `decode`."""
    text = bounded_json(data, source)
    envelope = _open(text, source)
    return envelope.pipebench, _value(envelope, text, source)


def _value(envelope: _Envelope, text: bytes, source: str) -> Any:
    kind = envelope.pipebench
    content: bytes | msgspec.Raw = envelope.content
    try:
        with collector_paused():
            if kind in ("plan", "bare-plan") and b'"shared_devices"' in text:
                require_elements(text, source, MOST_UNTYPED_ELEMENTS)
                content = _without_shared_devices(envelope.content)
            value = msgspec.json.decode(content, type=KINDS[kind])
    except PipebenchError:
        raise
    except MALFORMED as error:
        raise explanation(error, source, text, "$" if len(content) == len(text) else "$.content") from None
    written = encode(kind, value)  # equal texts need no second look: what is encoded has each key once
    if text != written and text[:-1] != written:
        require_unique_keys(text, source, written)
    if isinstance(value, Rows):
        _require_possible_rows(value, source)
    return value


def _require_possible_rows(value: Rows, source: str) -> None:
    for position, row in enumerate(value.rows):
        try:
            require_possible(row)
        except InvalidValue as error:
            raise PipebenchError(f"{source}: at rows[{position}]: {error}") from None


def _without_shared_devices(content: msgspec.Raw) -> bytes:
    """The content with the placement of each plan in place of its former field `shared_devices`."""
    document = msgspec.json.decode(content)
    for plan in (document, document.get("plan")) if isinstance(document, dict) else ():
        if isinstance(plan, dict) and "placement" not in plan and isinstance(plan.get("shared_devices"), bool):
            plan["placement"] = _placement_of(plan) if plan.pop("shared_devices") else "apart"
    return msgspec.json.encode(document)


def _placement_of(plan: dict[str, Any]) -> PlacementKind:
    """The placement of a plan that is not decoded yet; `listed` where its stages are not as they should be."""
    try:
        return placement_kind_of([stage["devices"] for stage in plan["stages"]])
    except (KeyError, TypeError, ValueError):
        return "listed"


def decode_as(data: bytes, kind: type[T], source: str) -> T:
    """As `decode`, for callers that name the Python type."""
    name = next(name for name, known in KINDS.items() if known is kind)
    return cast(T, decode(data, name, source))


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a document kind, with a text for each field. Raises PipebenchError for unknown kinds."""
    if kind not in KINDS:
        raise unknown("document kind", kind, KINDS)
    content = described(msgspec.json.schema(KINDS[kind]), KINDS[kind])
    definitions = content.pop("$defs", {})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"pipebench {kind}",
        "type": "object",
        "properties": {
            "pipebench": {"const": kind},
            "version": {"const": VERSION},
            "content": content,
        },
        "required": ["pipebench", "version", "content"],
        "$defs": definitions,
    }


def _open(data: bytes, source: str) -> _Envelope:
    try:
        text = without_mark(data)
        envelope = _bare_rows(text) or msgspec.json.decode(text, type=_Envelope)
    except msgspec.ValidationError as error:
        keys = _keys(text, source)
        if "seal" in keys:
            raise PipebenchError(
                f"{source} is a certificate", "check it: pipebench certify --check FILE"
            ) from None
        if "pipebench" in keys and "unknown field" in str(error):
            raise PipebenchError(f"{source}: {error}") from None
        hint = 'one starts with {"pipebench": KIND, "version": 1, "content": …}'
        if keys & MODEL_KEYS:
            hint = "it looks like a model's config.json: give it with --config"
        raise PipebenchError(f"{source}: not a pipebench document", hint) from None
    except MALFORMED as error:
        raise explanation(error, source, data) from None
    if envelope.pipebench not in KINDS:
        raise PipebenchError(f"{source}: {unknown('document kind', envelope.pipebench, KINDS)}")
    if envelope.version != VERSION:
        raise PipebenchError(
            f"{source}: version {envelope.version}, this pipebench reads version {VERSION}",
            "install a newer pipebench" if envelope.version > VERSION else None,
        )
    return envelope


def _keys(text: bytes, source: str) -> set[str]:
    """Of the object that the text holds; none where it holds something else. Raises PipebenchError: no JSON."""
    try:
        return set(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
    except msgspec.ValidationError:
        return set()
    except MALFORMED as error:
        raise explanation(error, source, text) from None


def _bare_rows(data: bytes) -> _Envelope | None:
    try:
        msgspec.json.decode(data, type=_BareRows)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return _Envelope("rows", VERSION, msgspec.Raw(data))
