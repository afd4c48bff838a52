"""What changed between two plans in structure alone: no costs, so their problems may differ."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest

from pipebench.bench.difference.matching import match_stages
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.value import Value

Figure = int | float | str | bool | tuple[int, ...] | dict[str, int] | None
STAGE_FIELDS = (
    "devices",
    "data_parallel",
    "replicas",
    "tensor_parallel",
    "micro_batch",
    "k",
    "in_flight",
    "recompute",
)
PLAN_FIELDS = ("copies", "pipelines", "routing", "placement")


class Change(Value, frozen=True, kw_only=True):
    """A field that differs."""

    field: str
    before: Figure
    after: Figure


class StageChange(Value, frozen=True, kw_only=True):
    """Changed fields of a matched stage; operators are reported apart."""

    before: int
    after: int
    changes: tuple[Change, ...]


class OperatorChange(Value, frozen=True, kw_only=True):
    """An operator that runs in another way: `choice` (an alternative, '' the plain one) or `sharding`."""

    operator: str
    field: str
    before: str
    after: str


class Move(Value, frozen=True, kw_only=True):
    """Operators that left stage `source` of the first plan for stage `target` of the second.

    None: they are in no stage there. weight_bytes: of the parameters that they use, where the problem is known.
    """

    operators: tuple[str, ...]
    source: int | None
    target: int | None
    weight_bytes: int | None = None


class Regrouping(Value, frozen=True, kw_only=True):
    """One stage of a plan and the several of the other plan that it is split into, or merged from."""

    whole: int
    parts: tuple[int, ...]


class Structure(Value, frozen=True, kw_only=True):
    """All differences of structure; stage numbers are positions in the plan that they belong to.

    matched: pairs of stages that are the same one. splits: whole in the first plan, parts in the second;
    merges: whole in the second, parts in the first: those stages that have more than half of their operators
    from (in) the whole. added, removed: stages that are neither matched nor part of one. edges: order edges.
    reordered: the matched stages are listed in another order.
    """

    matched: tuple[tuple[int, int], ...]
    moves: tuple[Move, ...]
    splits: tuple[Regrouping, ...]
    merges: tuple[Regrouping, ...]
    added: tuple[int, ...]
    removed: tuple[int, ...]
    stages: tuple[StageChange, ...]
    operators: tuple[OperatorChange, ...]
    plan: tuple[Change, ...]
    edges_added: tuple[tuple[int, int], ...]
    edges_removed: tuple[tuple[int, int], ...]
    reordered: bool

    @property
    def same(self) -> bool:
        """Whether nothing differs; the order in which a stage lists its operators does not count."""
        return not any(getattr(self, name) for name in self.__struct_fields__ if name != "matched")


def compare_structure(before: Plan, after: Plan) -> Structure:
    """The differences between two plans; (after, before) gives the same ones turned round."""
    match = match_stages(before, after)
    back = {right: left for left, right in match.items()}
    splits, merges = list(_regroupings(before, after)), list(_regroupings(after, before))
    kept = {
        (a, b): (match[a], match[b])
        for a, b in before.order_edges
        if a in match and b in match and (match[a], match[b]) in after.order_edges
    }
    parts_after = {part for split in splits for part in split.parts}
    parts_before = {part for merge in merges for part in merge.parts}
    order = [match[left] for left in sorted(match)]
    return Structure(
        matched=tuple(sorted(match.items())),
        moves=tuple(_moves(before, after, match, back)),
        splits=tuple(splits),
        merges=tuple(merges),
        added=tuple(j for j in range(len(after.stages)) if j not in back and j not in parts_after),
        removed=tuple(i for i in range(len(before.stages)) if i not in match and i not in parts_before),
        stages=tuple(_stage_changes(before, after, match)),
        operators=tuple(_operator_changes(before, after)),
        plan=tuple(_changes(before, after, PLAN_FIELDS)),
        edges_added=tuple(sorted(set(after.order_edges) - set(kept.values()))),
        edges_removed=tuple(sorted(set(before.order_edges) - set(kept))),
        reordered=order != sorted(order),
    )


def homes_of(plan: Plan) -> dict[str, list[int]]:
    """The stages of each operator, in order; constant operators may have several."""
    homes: dict[str, list[int]] = {}
    for position, stage in enumerate(plan.stages):
        for name in stage.operators:
            homes.setdefault(name, []).append(position)
    return homes


def _moves(before: Plan, after: Plan, match: Mapping[int, int], back: Mapping[int, int]) -> Iterator[Move]:
    ours, theirs = homes_of(before), homes_of(after)
    moved: dict[tuple[int | None, int | None], list[str]] = {}
    for name in dict.fromkeys([*ours, *theirs]):
        here, there = ours.get(name, []), theirs.get(name, [])
        left = [home for home in here if match.get(home) not in there]
        entered = [home for home in there if back.get(home) not in here]
        for source, target in zip_longest(left, entered):
            moved.setdefault((source, target), []).append(name)
    for (source, target), names in sorted(moved.items(), key=lambda item: _order(item[0])):
        yield Move(operators=tuple(names), source=source, target=target)


def _order(ends: tuple[int | None, int | None]) -> tuple[float, float]:
    source, target = (float("inf") if end is None else float(end) for end in ends)
    return source, target


def _regroupings(whole: Plan, parts: Plan) -> Iterator[Regrouping]:
    """Stages of `whole` that give more than half of the operators of two stages of `parts` or more."""
    homes = homes_of(whole)
    of_whole: dict[int, list[int]] = {}
    for position, stage in enumerate(parts.stages):
        counts: dict[int, int] = {}
        for name in stage.operators:
            for home in homes.get(name, ()):
                counts[home] = counts.get(home, 0) + 1
        largest = max(counts, key=counts.__getitem__, default=None)
        if largest is not None and 2 * counts[largest] > len(stage.operators):
            of_whole.setdefault(largest, []).append(position)
    for position, found in sorted(of_whole.items()):
        if len(found) > 1:
            yield Regrouping(whole=position, parts=tuple(found))


def _stage_changes(before: Plan, after: Plan, match: Mapping[int, int]) -> Iterator[StageChange]:
    for left, right in sorted(match.items()):
        changes = tuple(_changes(before.stages[left], after.stages[right], STAGE_FIELDS))
        if changes:
            yield StageChange(before=left, after=right, changes=changes)


def _changes(before: Plan | Stage, after: Plan | Stage, fields: Iterable[str]) -> Iterator[Change]:
    for field in fields:
        old, new = getattr(before, field), getattr(after, field)
        if old != new:
            yield Change(field=field, before=old, after=new)


def _operator_changes(before: Plan, after: Plan) -> Iterator[OperatorChange]:
    """Alternatives and splits of the operators that both plans have, wherever they run."""
    for field in ("choice", "sharding"):
        ours, theirs = _ways(before, field), _ways(after, field)
        for name, way in ours.items():
            if name in theirs and way != theirs[name]:
                yield OperatorChange(operator=name, field=field, before=way, after=theirs[name])


def _ways(plan: Plan, field: str) -> dict[str, str]:
    """How each operator runs, in words; that of a clone as often as it differs."""
    ways: dict[str, set[str]] = {}
    for stage in plan.stages:
        listed = getattr(stage, field) or [None] * len(stage.operators)
        for name, way in zip(stage.operators, listed, strict=True):
            ways.setdefault(name, set()).add(_way_text(way))
    return {name: " and ".join(sorted(found)) for name, found in ways.items()}


def _way_text(way: str | dict[str, int] | None) -> str:
    if isinstance(way, dict):
        return ", ".join(f"{dim}/{parts}" for dim, parts in sorted(way.items()) if parts > 1)
    return way or ""
