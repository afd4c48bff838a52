"""What runs of consecutive operators cost as stages, in arrays that kernels read; and drafts as such runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from random import Random
from typing import NamedTuple

import numpy as np

from pipebench.algorithms.planning import memory_limits
from pipebench.costs.formula import Formula
from pipebench.costs.links import Passage, Port, ports_between
from pipebench.costs.messages import level_between
from pipebench.costs.model import CostModel
from pipebench.costs.placement import farthest, kinds_of_copies
from pipebench.costs.quantise import FloatArray, IntArray, whole_bytes
from pipebench.domain.cluster import LinkLevel, LinkMode
from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import OperatorCosts
from pipebench.domain.topology import topological_order
from pipebench_search.drafts.draft import Draft, Drafting, Manner, Part
from pipebench_search.estimates.guess import Guesses

END, LANE, WAY, CAP = range(4)
"""Columns of a row of stages: the place behind its last operator, its lane, its way, and the most micro-batches
that it keeps in flight."""
FORWARD, BACKWARD, WEIGHT, STATE, SAVED, PARAMETERS = range(6)
"""Rows of `Costs.sums`."""
TENSOR, GRADIENT = range(2)
"""Rows of what is sent."""
INPUT, BUFFER = range(2)
"""Rows of what a tensor takes where it is read: itself, and with its gradient."""
DELAY, FULL, HALF = range(3)
"""On what messages between two lanes wait for each other: nothing; those in one direction; all."""
MODES: dict[LinkMode, int] = {"delay": DELAY, "full": FULL, "half": HALF}
MOST_CELLS = 2**24
"""Ways, sizes and operators for which arrays are made."""


class Costs(NamedTuple):
    """By lane, way, and place of an operator in the order; of one micro-batch, on one device.

    shape_of: by lane, the number of its size. link: by pair of lanes, the number of their kind of message; or -1.
    sums: the ns of forwards, backwards and weight gradients, and bytes of state, of what is saved and of
    parameters, of all operators before a place, shape (6, sizes, ways, n + 1). workspace, transient: the most
    bytes of 2^k operators from a place on, shapes (k, n) and (k, sizes, ways, n); no rows of `transient` where it
    is 0 throughout.
    recomputes: by way, 1 where a backward runs the forward again. update: by the last lane that runs anything,
    behind which the next copy begins, and by lane, the ns of an update that has any weights, and of each byte of
    them.
    first_made: by place, the first tensor that is made there or behind; tensors stand in the order in which they
    are made, inputs of the model first. first_reader, reader: the places that read each. last_reader: the last.
    sent: ns of its messages there and back, shape (2, kinds, tensors). port_first: by pair of lanes, sending lane
    first, the first of `ports` that messages pass, shape (lanes * lanes + 1). ports: numbers of ports and their
    kinds, shape (ports of all pairs, 2). occupied: ns for which a message there and back occupies a port of each
    kind, shape (2, kinds, tensors). received: bytes that a stage which recomputes keeps of it, and of its message
    with the gradient's, shape (2, sizes, tensors).
    limit: by lane, bytes. mode: DELAY, FULL or HALF. micro_batches: of a mini-batch. steady: 1 in
    async, where a share of the update follows each backward, which is not a part of what backwards take.
    """

    shape_of: IntArray
    link: IntArray
    sums: IntArray
    workspace: IntArray
    transient: IntArray
    recomputes: IntArray
    update: FloatArray
    first_made: IntArray
    first_reader: IntArray
    reader: IntArray
    last_reader: IntArray
    sent: IntArray
    port_first: IntArray
    ports: IntArray
    occupied: IntArray
    received: IntArray
    limit: IntArray
    mode: int
    micro_batches: int
    steady: int


@dataclass(frozen=True)
class Line:
    """Operators in a row, and lanes and ways for runs of them.

    like: a draft of the line, which says all that its others have alike. parts: its stages, one behind the other.
    order: operators by place. sizes: devices of each lane. ways: of one degree. placed: whether each lane has to
    keep as many stages as it has.
    """

    like: Draft
    parts: tuple[int, ...]
    order: tuple[int, ...]
    sizes: tuple[int, ...]
    ways: tuple[Manner, ...]
    placed: bool
    costs: Costs

    @property
    def splits(self) -> bool:
        """Whether weight gradients are tasks of their own: where there are any."""
        return bool(self.costs.sums[WEIGHT].any())

    def stages(self, caps: Sequence[int]) -> IntArray:
        """The rows of `like`, shape (stages, 4). caps: what its stages keep in flight."""
        rows: list[tuple[int, int, int, int]] = []
        end = 0
        for at in self.parts:
            part = self.like.parts[at]
            end += len(part.operators)
            rows.append((end, part.group, self.ways.index(part.way), caps[at]))
        return np.array(rows, np.int64)

    def draft_of(self, stages: IntArray) -> Draft:
        """The draft that rows of stages say, without what they keep in flight.

        A lane that runs nothing stays where others follow: these stand behind it.
        """
        parts: list[Part] = []
        first = 0
        for end, lane, way, _ in stages.tolist():
            micro_batch = self.like.parts[0].micro_batch
            parts.append(Part(self.order[first:end], lane, self.ways[way], micro_batch))
            first = end
        sizes = self.sizes[: 1 + max(part.group for part in parts)]
        return replace(self.like, parts=tuple(parts), sizes=sizes, chained=False)


def line_of(
    model: CostModel,
    drafting: Drafting,
    guesses: Guesses,
    draft: Draft,
    draw: Random | None = None,
    reserve: bool = True,
) -> Line | None:
    """The line of a draft whose stages have equal micro-batches. Idle devices are lanes, too.

    draw: random numbers, for an order of the operators of each stage that goes one branch after the other; None:
    as the stages have them. reserve: whether the memory stays free that the problem wants free.
    None where stages differ in degree or wait for each other in a circle, where operators have no times, or what a
    stage costs is no sum over its operators: replicas that share all weights, ranks that share out experts,
    devices of several types.
    """
    problem = model.problem
    degrees = {part.way.tensor_parallel for part in draft.parts}
    if len(degrees) > 1 or problem.regime.shards_weights or len(set(problem.cluster.devices)) > 1:
        return None
    if problem.regime.expert_ranks > 1:
        return None
    parts = _one_behind_the_other(model, draft)
    degree = degrees.pop()
    pins = problem.pins
    placed = any(pin is not None for pin in (pins.pipeline, pins.virtual_stages, pins.micro_batch_size))
    alone = pins.data_parallel in (None, draft.copies)
    idle = problem.cluster.size // draft.copies - sum(draft.sizes) if alone else 0
    sizes = (*draft.sizes, *(degree,) * (idle // degree))
    own = [part.way for part in draft.parts]
    ways = tuple(dict.fromkeys((*(way for way in drafting.ways if way.tensor_parallel == degree), *own)))
    if parts is None or len(ways) * len(set(sizes)) * len(model.graph.operators) > MOST_CELLS:
        return None
    each = [draft.parts[at].operators for at in parts]
    if draw is not None:
        each = [_branch_by_branch(model.graph, operators, draw) for operators in each]
    order = tuple(operator for operators in each for operator in operators)
    try:
        costs = _Prices(model, guesses, replace(draft, sizes=sizes), order, ways).costs(reserve)
    except PipebenchError:
        return None
    return Line(draft, parts, order, sizes, ways, placed, costs)


def _one_behind_the_other(model: CostModel, draft: Draft) -> tuple[int, ...] | None:
    """The stages so that each is behind those that it reads from; None where they wait in a circle."""
    home = {operator: at for at, part in enumerate(draft.parts) for operator in part.operators}
    after: list[set[int]] = [set() for _ in draft.parts]
    for operator, at in home.items():
        after[at].update(home[reader] for reader in model.graph.successors[operator] if home[reader] != at)
    try:
        return tuple(topological_order([sorted(each) for each in after], [str(at) for at in range(len(after))]))
    except PipebenchError:
        return None


def _branch_by_branch(graph: OperatorGraph, operators: tuple[int, ...], draw: Random) -> tuple[int, ...]:
    """The operators in a topological order; where one may be next that reads from the last, such a one is."""
    inside = set(operators)
    waits = {each: len(inside & set(graph.predecessors[each])) for each in operators}
    ready = [each for each in operators if not waits[each]]
    draw.shuffle(ready)
    found: list[int] = []
    while ready:
        found.append(ready.pop())
        readers = [each for each in graph.successors[found[-1]] if each in inside]
        draw.shuffle(readers)
        for reader in readers:
            waits[reader] -= 1
            if not waits[reader]:
                ready.append(reader)
    return tuple(found)


class _Prices:
    """The arrays of `Costs`. draft: with all lanes."""

    def __init__(
        self, model: CostModel, guesses: Guesses, draft: Draft, order: tuple[int, ...], ways: tuple[Manner, ...]
    ) -> None:
        self._model, self._guesses, self._draft, self._order, self._ways = model, guesses, draft, order, ways
        self._place = {operator: at for at, operator in enumerate(order)}
        self._micro_batch = draft.parts[0].micro_batch
        self._sizes = list(dict.fromkeys(draft.sizes))
        ends = np.cumsum([0, *draft.sizes]).tolist()
        self._homes = [range(first, end) for first, end in pairwise(ends)]

    def costs(self, reserve: bool) -> Costs:
        """Raises PipebenchError where an operator has no times."""
        problem, draft = self._model.problem, self._draft
        *sums, transient = self._of_operators()
        shape_of = [self._sizes.index(size) for size in draft.sizes]
        graph = self._model.graph
        made = np.array([self._place[each] if each >= 0 else -1 for each in graph.producers], np.int64)
        tensors = np.argsort(made, kind="stable").tolist()
        link, sent, port_first, ports, occupied = self._messages(tensors)
        readers = [[self._place[reader] for reader in graph.consumers[tensor]] for tensor in tensors]
        workspace = np.array([self._operator(each).workspace_bytes for each in self._order], np.int64)
        return Costs(
            shape_of=np.array(shape_of, np.int64),
            link=link,
            sums=_before(np.stack(sums)),
            workspace=_most(workspace),
            transient=_most(transient) if transient.any() else np.zeros((0, *transient.shape), np.int64),
            recomputes=np.array([way.recompute == "stage" for way in self._ways], np.int64),
            steady=int(problem.regime.mode == "async"),
            update=self._updates(sums[PARAMETERS][:, 0]),
            first_made=np.searchsorted(np.sort(made), np.arange(len(self._order) + 1)),
            first_reader=np.cumsum([0, *map(len, readers)]),
            reader=np.array([each for some in readers for each in some], np.int64),
            last_reader=np.array([max(some, default=-1) for some in readers], np.int64),
            sent=sent,
            port_first=port_first,
            ports=ports,
            occupied=occupied,
            received=self._received(tensors),
            limit=np.array([memory_limits(problem, home)[0 if reserve else -1] for home in self._homes], np.int64),
            mode=MODES[problem.cluster.link_mode],
            micro_batches=problem.mini_batch // draft.copies // self._micro_batch,
        )

    def _operator(self, operator: int) -> OperatorCosts:
        problem = self._model.problem
        return problem.profile.on(problem.cluster.devices[0]).operators[operator]

    def _of_operators(self) -> tuple[IntArray, ...]:
        """What `Costs.sums` has of each operator, and its transient bytes, shape (sizes, ways, n) each."""
        model, draft = self._model, self._draft
        found = np.zeros((7, len(self._sizes), len(self._ways), len(self._order)), np.int64)
        for size, way, place in np.ndindex(*found.shape[1:]):
            operator, manner = self._order[place], self._ways[way]
            part = Part((operator,), draft.sizes.index(self._sizes[size]), manner, self._micro_batch)
            times, stage = self._guesses.stage_times(draft, part), self._guesses.stage(draft, part)
            parameters, fixed, transient = model.parameter_bytes(stage), 0, 0
            if manner.choice[operator]:
                chosen = self._operator(operator).alternative(manner.choice[operator])
                fixed = chosen.fixed_bytes
                transient = whole_bytes(chosen.transient_bytes_per_sample * model.local_samples(stage))
            state = fixed + model.formula.state_bytes(parameters, stage.data_parallel * draft.copies)
            backward = times.backward
            if model.problem.regime.mode == "async":
                update = self._guesses.update_ns(draft, part)
                backward -= model.formula.update_share_ns(update, self._micro_batch, draft.copies)
            found[:, size, way, place] = (
                *(times.forward, backward, times.weight_gradient),
                *(state, model.saved_bytes(stage), parameters, transient),
            )
        return tuple(found)

    def _updates(self, parameters: IntArray) -> FloatArray:
        """What `Costs` has as update. parameters: by size and place."""
        copies, sizes = self._draft.copies, self._draft.sizes
        found = np.zeros((len(sizes), len(sizes), 2))
        known: dict[tuple[int, str], tuple[float, float]] = {}
        for last in range(len(sizes)) if copies > 1 else (len(sizes) - 1,):
            draft = replace(self._draft, sizes=sizes[: last + 1])
            for lane, size in enumerate(draft.sizes):
                level = self._guesses.reduction_level(self._homes[lane].start, size, copies, sum(draft.sizes))
                key = size, level.name
                if key not in known:
                    known[key] = self._update(draft, lane, parameters[self._sizes.index(size)])
                found[last, lane] = known[key]
        return found if copies > 1 else np.repeat(found[-1:], len(sizes), axis=0)

    def _update(self, draft: Draft, lane: int, parameters: IntArray) -> tuple[float, float]:
        """Through what all operators take on the lane, and the one with the most weights. parameters: by place."""
        points: dict[int, int] = {}
        for operators in ((self._order[int(parameters.argmax())],), self._order):
            part = Part(operators, lane, self._ways[0], self._micro_batch)
            weights = self._model.parameter_bytes(self._guesses.stage(draft, part))
            points[weights] = self._guesses.update_ns(draft, part)
        (least, less), (most, more) = min(points.items()), max(points.items())
        each = (more - less) / (most - least) if most > least else more / max(1, most)
        return more - each * most, each

    def _messages(self, tensors: list[int]) -> tuple[IntArray, ...]:
        """What `Costs` has as link, sent, port_first, ports and occupied."""
        cluster, step = self._model.problem.cluster, self._model.problem.regime.step
        degree = self._ways[0].tensor_parallel
        shares = degree if step is not None and step.splits_messages else 1
        lanes, used = range(len(self._homes)), range(sum(self._draft.sizes))
        copies = kinds_of_copies(cluster, used, self._draft.copies)
        kinds: dict[tuple[LinkLevel, int, tuple[int, ...]], int] = {}
        ports: dict[Port, int] = {}
        passages: dict[tuple[int, float], tuple[int, Passage]] = {}
        link = np.full((len(lanes), len(lanes)), -1, np.int64)
        passed: list[list[tuple[int, int]]] = []
        for one, other in product(lanes, lanes):
            passed.append([])
            if one == other:
                continue
            both = self._homes[one], self._homes[other]
            in_copies = {
                copy: [range(home.start + copy * len(used), home.stop + copy * len(used)) for home in both]
                for copy in copies
            }
            ends = in_copies[farthest(cluster, copies, used, [*both[0], *both[1]])]
            occupied_by = in_copies.items() if cluster.link_mode != "delay" else ()
            for each in (
                port for copy, homes in occupied_by for port in ports_between(cluster, homes[0], homes[1], copy)
            ):
                kind, _ = passages.setdefault((each.groups, each.bandwidth_bytes_s), (len(passages), each))
                passed[-1].append((ports.setdefault(each.port, len(ports)), kind))
            ranks = shares * (min(map(len, ends)) // degree)
            crossed = level_between(cluster, *ends), ranks, tuple(sorted({kind for _, kind in passed[-1]}))
            link[one, other] = kinds.setdefault(crossed, len(kinds))
        # Of a tensor, and of its gradient.
        sizes = [
            [of(tensor, self._micro_batch) for tensor in tensors]
            for of in (self._model.tensor_bytes, self._model.gradient_bytes)
        ]
        occupied = np.array(
            [[[each.occupied_ns(size) for size in some] for _, each in passages.values()] for some in sizes],
            np.int64,
        ).reshape(2, len(passages), len(tensors))
        sent = [
            [
                np.max(
                    np.stack([Formula.message_ns(level, np.array(some), ranks, ranks), *held[list(slow)]]), axis=0
                )
                for level, ranks, slow in kinds
            ]
            for some, held in zip(sizes, occupied, strict=True)
        ]
        return (
            link,
            np.array(sent, np.int64).reshape(2, len(kinds), len(tensors)),
            np.cumsum([0, *map(len, passed)]),
            np.array([each for some in passed for each in some], np.int64).reshape(-1, 2),
            occupied,
        )

    def _received(self, tensors: list[int]) -> IntArray:
        """What `Costs` has as received."""
        model, degree = self._model, self._ways[0].tensor_parallel
        samples = [-(-self._micro_batch // (size // degree)) for size in self._sizes]
        there, back = (
            np.array([[of(tensor, some) for tensor in tensors] for some in samples], np.int64)
            for of in (model.tensor_bytes, model.gradient_bytes)
        )
        return np.stack([there, there + back])


def _before(each: IntArray) -> IntArray:
    """The sum of all before each place, the end included, along the last axis."""
    return np.concatenate([np.zeros((*each.shape[:-1], 1), np.int64), each.cumsum(axis=-1)], axis=-1)


def _most(each: IntArray) -> IntArray:
    """The most of 1, 2, 4, … from each place on, fewer at the end, along the last axis; by number first.

    The most of any run is that of two of them.
    """
    found = [each]
    while 2 << (len(found) - 1) <= each.shape[-1]:
        half = 1 << (len(found) - 1)
        last = found[-1]
        found.append(np.concatenate([np.maximum(last[..., :-half], last[..., half:]), last[..., -half:]], axis=-1))
    return np.stack(found)
