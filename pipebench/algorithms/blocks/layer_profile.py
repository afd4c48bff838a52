"""A profile whose layers recompute: each layer is one operator, with a way to run again.

Where a profile has a layer operator by operator, they are joined. What runs again, and what is kept for it,
follows from their costs:

full: the layer keeps the tensors that enter it, whole on each device also where its operators are split
(Megatron-LM without sequence parallelism); its forward runs again before its backward.
selective: the core of its attention (the operators without weights between queries, keys and values and the
context) runs again from the tensors that enter it (Korthikanti et al. 2022, section 5).

What the layer saves besides is held while its own backward runs.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from msgspec.structs import replace

from pipebench.algorithms.blocks.grouped import (
    PLAIN,
    joined_graph,
    joined_way,
    plain_way,
    summed_s,
    summed_where_said,
)
from pipebench.domain.errors import InvalidValue
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.domain.profile import Alternative, DeviceCosts, OperatorCosts, Profile
from pipebench.domain.recomputation import LayerRecompute, permits, repeated

LAYER = "layer"
"""The kind of an operator that stands for all operators of a layer."""
JOINED = "each layer is one operator, so that it can recompute"
CORE_DIMS = frozenset(("heads", "keys"))
"""Operators that have both work on attention's scores."""
_IDS: dict[LayerRecompute, str] = {"full": "recompute", "selective": "selective"}


def with_layers(profile: Profile, recompute: LayerRecompute) -> Profile:
    """The profile with a way to recompute so for each layer, where that follows from what it has.

    A layer of one operator that has such a way stays as it is. Under `selective` a layer gets none where no
    operator of it is known as attention's core. Raises InvalidValue for layers that cannot be one operator each,
    because data leave one of them and come back.
    """
    graph = profile.graph
    members: dict[int, list[int]] = {}
    for op in graph.topological:
        layer = graph.operators[op].layer
        if layer is not None:
            members.setdefault(layer, []).append(op)
    if all(len(ops) == 1 and _offers(profile, ops[0], recompute) for ops in members.values()):
        return profile
    groups = _groups(graph, members)
    taken = {operator.name for operator in graph.operators}
    shells = [_shell(graph, ops, taken) for ops in groups]
    group_of = [0] * len(graph.operators)
    for position, ops in enumerate(groups):
        for op in ops:
            group_of[op] = position
    try:
        made = joined_graph(graph, shells, group_of)
    except InvalidValue as error:
        raise InvalidValue(
            f"layers of profile {profile.name!r} cannot recompute one by one: {error.message}", "pin stage"
        ) from None
    operators = [
        graph.operators[ops[0]] if len(ops) == 1 else joined
        for ops, joined in zip(groups, made.operators, strict=True)
    ]
    crossing = {tensor.name for tensor in made.tensors}
    layers = [
        _Layer(graph, tuple(ops), operator.name, crossing) if operator.layer is not None else None
        for ops, operator in zip(groups, operators, strict=True)
    ]
    costs = tuple(
        replace(
            each,
            operators=tuple(
                each.operators[ops[0]] if layer is None else layer.costs(each, recompute)
                for ops, layer in zip(groups, layers, strict=True)
            ),
        )
        for each in profile.costs
    )
    joined = any(len(ops) > 1 for ops in groups)
    notes = (*profile.provenance.notes, JOINED) if joined else profile.provenance.notes
    return replace(
        profile,
        graph=replace(made, operators=tuple(operators)),
        costs=costs,
        provenance=replace(profile.provenance, notes=notes),
    )


def _offers(profile: Profile, op: int, recompute: LayerRecompute) -> bool:
    operator = profile.graph.operators[op]
    return all(
        any(permits(recompute, operator, way) for way in each.operators[op].alternatives) for each in profile.costs
    )


def _groups(graph: OperatorGraph, members: Mapping[int, list[int]]) -> list[list[int]]:
    """The operators of each layer, and every other operator by itself, in topological order of the first."""
    groups: list[list[int]] = []
    for op in graph.topological:
        layer = graph.operators[op].layer
        if layer is None:
            groups.append([op])
        elif members[layer][0] == op:
            groups.append(members[layer])
    return groups


def _shell(graph: OperatorGraph, ops: Sequence[int], taken: AbstractSet[str]) -> Operator:
    first = graph.operators[ops[0]]
    if len(ops) == 1:
        return first
    name = f"layer {first.layer}"
    while name in taken:
        name += "'"
    return Operator(name=name, kind=LAYER, layer=first.layer)


@dataclass(frozen=True)
class _Layer:
    """The operators of a layer (positions, in topological order), and the name of the one that stands for them.

    crossing: the names of the tensors that leave or enter a layer.
    """

    graph: OperatorGraph
    operators: tuple[int, ...]
    name: str
    crossing: set[str]

    def costs(self, on: DeviceCosts, recompute: LayerRecompute) -> OperatorCosts:
        """Costs of the layer on one device type: sums, and for each degree a plain and a recomputing way."""
        inside = [on.operators[op] for op in self.operators]
        if len(inside) == 1:
            return self._alone(inside[0], recompute)
        degrees = sorted({1} | {way.tensor_parallel for each in inside for way in each.alternatives})
        core = [place for place, op in enumerate(self.operators) if self._in_core(op)]
        alternatives: list[Alternative] = []
        for degree in degrees:
            together = [self._way(each, degree) for each in inside]
            plain = joined_way(self.graph, f"tp{degree}", inside, together, self.crossing)
            plain = replace(plain, tensor_parallel=degree)
            if degree > 1:
                alternatives.append(plain)
            if recompute == "full":
                alternatives.append(self._in_full(plain))
            elif core:
                alternatives.append(self._selective(plain, together, inside, core))
        first = joined_way(self.graph, PLAIN, inside, [self._way(each, 1) for each in inside], self.crossing)
        apart = any(each.weight_gradient_s for each in inside)
        none = (0.0,) * len(on.micro_batches)
        return OperatorCosts(
            operator=self.name,
            forward_s=first.forward_s,
            backward_s=first.backward_s,
            weight_gradient_s=summed_s([each.weight_gradient_s or none for each in inside]) if apart else (),
            saved_bytes_per_sample=first.saved_bytes_per_sample,
            workspace_bytes=max(each.workspace_bytes for each in inside),
            alternatives=tuple(alternatives),
        )

    def _alone(self, each: OperatorCosts, recompute: LayerRecompute) -> OperatorCosts:
        """A layer of one operator: as it is, and where it lacks that the ways to run all of it again."""
        if recompute == "selective" or any(repeated(way) == recompute for way in each.alternatives):
            return each
        plain = [self._way(each, 1), *(way for way in each.alternatives if repeated(way) == "none")]
        return replace(each, alternatives=(*each.alternatives, *map(self._in_full, plain)))

    def _in_core(self, op: int) -> bool:
        operator = self.graph.operators[op]
        return operator.dims.keys() >= CORE_DIMS and not operator.parameters

    def _way(self, each: OperatorCosts, degree: int) -> Alternative:
        """How an operator runs at that degree: split, or whole on each device where it cannot be split so."""
        for way in each.alternatives:
            if way.tensor_parallel == degree > 1 and repeated(way) == "none":
                return way
        return plain_way(self.graph, each)

    def _entering(self, ops: Sequence[int]) -> float:
        """Bytes for a sample of the tensors that some of these operators read and none of them makes."""
        inside = set(ops)
        read = {self.graph.tensor_index[name] for op in ops for name in self.graph.operators[op].inputs}
        outside = (tensor for tensor in read if self.graph.producers[tensor] not in inside)
        return sum(self.graph.tensors[tensor].forward_bytes_per_sample for tensor in outside)

    def _in_full(self, plain: Alternative) -> Alternative:
        """The same with all of the layer run again."""
        return _again(plain, [plain], "full", self._entering(self.operators))

    def _selective(
        self,
        plain: Alternative,
        together: Sequence[Alternative],
        inside: Sequence[OperatorCosts],
        core: Sequence[int],
    ) -> Alternative:
        """The same with the core of attention run again. core: its operators, as places in the layer."""
        of_core = sum(together[place].saved_bytes_per_sample for place in core)
        whole = sum(inside[place].saved_bytes_per_sample for place in core)
        entering = self._entering([self.operators[place] for place in core])
        kept = plain.saved_bytes_per_sample - of_core + entering * (of_core / whole if whole else 1.0)
        return _again(plain, [together[place] for place in core], "selective", kept)


def _again(plain: Alternative, parts: Sequence[Alternative], what: LayerRecompute, kept: float) -> Alternative:
    """A way that keeps so many bytes for a sample and runs the forward of these parts again, collectives too."""
    saved = plain.saved_bytes_per_sample
    kept = min(saved, kept)
    return replace(
        plain,
        id=_IDS[what] if plain.tensor_parallel == 1 else f"{plain.id}-{_IDS[what]}",
        recompute=True,
        selective=what == "selective",
        backward_s=summed_s([plain.backward_s, *(part.forward_s for part in parts)]),
        backward_collective_s=summed_where_said(
            [plain.backward_collective_s, *(part.forward_collective_s for part in parts)]
        ),
        saved_bytes_per_sample=kept,
        transient_bytes_per_sample=saved - kept,
    )
