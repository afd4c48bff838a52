"""Layouts that people run today: a Megatron layout, torchtitan's parts or split points, PipeDream's stage ids."""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipebench.costs.shapes.transformer import EMBEDDING, HEAD, LAYER, NORM, POSITIONS
from pipebench.documents.decoding import require_size, without_mark
from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.limits import LARGEST_LAYOUT_BYTES
from pipebench.domain.placement import PlacementKind
from pipebench.formats.files import read_file
from pipebench.formats.frameworks.megatron import check_layout, parse_layout
from pipebench.formats.frameworks.torchtitan import check_parts, module_names
from pipebench.formats.profiles.pipedream import recognises
from pipebench.formats.profiles.pipedream_graph import parse_lines

MEGATRON = "megatron:"
VEE = ("ZBVZeroBubble", "DualPipeV")
_LAYOUT = re.compile(rb"\s*[EtmL|()*,0-9 ]+\s*")
_PARTS = re.compile(r"module_fqns_per_model_part\s*=\s*(?=\[)")
_VEE = re.compile(rf"""pipeline_parallel_schedule\s*=\s*["']({"|".join(VEE)})["']""", re.IGNORECASE)
_DESCRIBED = re.compile(r".*\((.+)\)")
Contents = list[list[int]]


@dataclass(frozen=True, slots=True)
class ForeignLayout:
    """name: for the tables. contents(graph, ranks): the operators of each stage in order; ranks None: as many as
    there are stages; it raises PipebenchError where the layout is for another model or breaks a rule.
    placement: how its stages stand on ranks; `v` is torchtitan's for the schedules that VEE names.
    """

    name: str
    kind: str
    text: str
    contents: Callable[[OperatorGraph, int | None], Contents]
    placement: PlacementKind = "in-turn"


def is_foreign(text: str) -> bool:
    """Whether `--plans` names a layout rather than a plan file."""
    if text.startswith(MEGATRON):
        return True
    data = read_file(text)
    return not without_mark(data).lstrip().startswith(b"{")


def read_layout(text: str) -> ForeignLayout:
    """`megatron:STRING`, or a file of any of the kinds. Raises PipebenchError that says which there are."""
    if text.startswith(MEGATRON):
        return _megatron(text.removeprefix(MEGATRON), text)
    data = read_file(text)
    if data.startswith(b"\xef\xbb\xbf"):
        raise PipebenchError(f"{text}: starts with a byte-order mark", "save it as UTF-8 without one")
    require_size(data, LARGEST_LAYOUT_BYTES, text)
    if recognises(data):
        return _pipedream(data, text)
    if _LAYOUT.fullmatch(data):
        return _megatron(data.decode().removesuffix("\n"), text)
    listed = _literal(data, text)
    return _titan(listed, text, "v" if _VEE.search(data.decode()) else "in-turn")


def _megatron(layout: str, name: str) -> ForeignLayout:
    stages = parse_layout(layout)

    def contents(graph: OperatorGraph, ranks: int | None) -> Contents:
        tables, layers, norms, heads = _language(graph, "a Megatron layout")
        check_layout(stages, ranks or len(stages), len(layers))
        empty = [position for position, stage in enumerate(stages) if not stage]
        if empty:
            raise PipebenchError(
                f"stage {empty[0]} of the layout is empty", "plans have an operator on every stage"
            )
        left = iter(layers)
        made: Contents = []
        for stage in stages:
            held = [*tables] if "E" in stage else []
            held += [next(left) for symbol in stage if symbol == "t"]
            made.append(held + ([*norms, *heads] if "L" in stage else []))
        return made

    return ForeignLayout(name, "megatron", layout, contents)


def _titan(listed: Any, name: str, placement: PlacementKind) -> ForeignLayout:
    if isinstance(listed, list) and listed and all(isinstance(each, str) for each in listed):
        points: list[str] = listed
        parts: list[list[str]] | None = None
    elif (
        isinstance(listed, list)
        and listed
        and all(isinstance(part, list) and all(isinstance(each, str) for each in part) for part in listed)
    ):
        parts = listed
    else:
        raise PipebenchError(f"{name}: neither a list of lists of module names nor one of split points")

    def contents(graph: OperatorGraph, ranks: int | None) -> Contents:
        tables, layers, norms, heads = _language(graph, "torchtitan's parts")
        names = module_names(len(layers))
        split = parts if parts is not None else _parts_at(points, names)
        split = [["lm_head" if each == "output" else each for each in part] for part in split]
        check_parts(split, len(layers), ranks or len(split))
        empty = [position for position, part in enumerate(split) if not part]
        if empty:
            raise PipebenchError(f"part {empty[0]} is empty", "plans have an operator on every stage")
        ops = dict(zip(names, ([*tables], *([op] for op in layers), norms, heads), strict=True))
        return [[op for each in part for op in ops[each]] for part in split]

    return ForeignLayout(name, "torchtitan", repr(listed), contents, placement)


def _parts_at(points: list[str], names: list[str]) -> list[list[str]]:
    """The parts that begin at split points (torchtitan before #1416)."""
    made: list[list[str]] = [[]]
    left = set(points)
    for each in names:
        if each in left:
            left.discard(each)
            made.append([])
        made[-1].append(each)
    if left:
        raise PipebenchError(
            f"split point {min(left)!r} is no module of the model", f"it has {len(names) - 3} layers"
        )
    return made


def _pipedream(data: bytes, name: str) -> ForeignLayout:
    nodes, _ = parse_lines(data, name)

    def contents(graph: OperatorGraph, ranks: int | None) -> Contents:
        del ranks
        stage_of: dict[str, int] = {}
        for node in nodes:
            if node.stage is None:
                continue
            described = _DESCRIBED.fullmatch(node.description)
            for key in (node.identifier, described[1] if described else node.identifier):
                stage_of.setdefault(key, node.stage)
        if not stage_of:
            raise PipebenchError(
                f"{name}: no node has a stage_id", "give the file that PipeDream's optimizer wrote"
            )
        missing = [op.name for op in graph.operators if op.name not in stage_of]
        if missing:
            raise PipebenchError(
                f"{name}: {len(missing)} operators of {graph.name!r} have no stage there, {missing[0]!r} first",
                "is it for another model?",
            )
        numbers = sorted({stage_of[op.name] for op in graph.operators})
        made: Contents = [[] for _ in numbers]
        for op in graph.topological:
            made[numbers.index(stage_of[graph.operators[op].name])].append(op)
        return made

    return ForeignLayout(name, "pipedream", data.decode(errors="replace"), contents)


def _language(graph: OperatorGraph, what: str) -> tuple[list[int], list[int], list[int], list[int]]:
    """Embedding (with positions), layers, norm and head of a language model."""
    kinds = [operator.kind for operator in graph.operators]
    if LAYER not in kinds:
        raise PipebenchError(f"{what} is for a language model, {graph.name!r} is none", "plan one with --config")

    def of(*wanted: str) -> list[int]:
        return [op for op in graph.topological if kinds[op] in wanted]

    return of(EMBEDDING, POSITIONS), of(LAYER), of(NORM), of(HEAD)


def _literal(data: bytes, name: str) -> Any:
    """A list in JSON or Python, alone or behind `module_fqns_per_model_part=`."""
    try:
        text = data.decode()
        found = _PARTS.search(text)
        if found:
            text = _bracket_text(text[found.end() :])
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise PipebenchError(
            f"{name}: no layout that is known",
            "a plan file, a Megatron layout, torchtitan's list of parts, or PipeDream's graph.txt with stage ids",
        ) from None


def _bracket_text(text: str) -> str:
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if depth == 0:
            return text[: position + 1]
    return text
