"""The neighbours of a plan: cuts, stages, devices, replicas, micro-batches, ways to run, placement."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product

from pipebench.algorithms.micro_batches import divisors, micro_batch_candidates, replica_counts
from pipebench.costs.model import CostModel
from pipebench.domain.plan import ReplicaMode
from pipebench_search.drafts.draft import Draft, Drafting, Part
from pipebench_search.drafts.pieces import MOST_PIECES, Pieces

Move = tuple[str, Draft]
"""What was changed, in words, and what came of it."""
Place = tuple[int, ...]
"""Where in a draft something is changed: stages, groups and pieces by number."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Moves of one kind. weight: how often one is drawn. places: of a draft. at: the moves at one of them."""

    weight: float
    places: Callable[[Draft], list[Place]]
    at: Callable[[Draft, Place], Iterator[Move]]


class Neighbourhood:
    """All single moves from a draft. They may lead to invalid plans: the check says so."""

    def __init__(self, model: CostModel, drafting: Drafting) -> None:
        self._problem, self._drafting = model.problem, drafting
        graph = model.graph
        self._after = [set(readers) for readers in graph.successors]
        count = self._problem.cluster.size
        self.micro_batches = micro_batch_candidates(self._problem, tuple(range(1, count + 1)))
        middle = self.micro_batches[len(self.micro_batches) // 2]
        forward, backward = model.times.at(max(1, middle // count))
        self.work = [max(1, int(each)) for each in (forward + backward)]
        self._topological = graph.topological
        self._levels = len(self._problem.cluster.levels)
        self._pieces = Pieces(graph.successors, self.work)
        self._kinds = (
            Kind(0.42, self._cut_places, self._cuts_at),
            Kind(0.03, self._branch_places, self._branches_at),
            Kind(0.05, _whole, self._devices),
            Kind(0.04, _whole, self._sizes),
            Kind(0.06, _whole, self._manners),
            Kind(0.12, self._join_places, self._joins_at),
            Kind(0.16, _stages, self._splits_at),
            Kind(0.09, _stages, self._homes_at),
            Kind(0.01, self._group_places, self._groups_at),
            Kind(0.01, _whole, self._recuts),
            Kind(0.005, _whole, self._copies),
            Kind(0.005, _whole, self._routes),
        )

    def moves(self, draft: Draft) -> Iterator[Move]:
        """All of them, in a fixed order."""
        for kind in self._kinds:
            for place in kind.places(draft):
                yield from kind.at(draft, place)

    def drawn(self, draft: Draft, draw: random.Random) -> Iterator[Move]:
        """Random ones without end, mostly cuts and splits; the same may come again."""
        weights = [kind.weight for kind in self._kinds]
        places: dict[int, list[Place]] = {}
        while True:
            number = draw.choices(range(len(weights)), weights)[0]
            kind = self._kinds[number]
            if number not in places:
                places[number] = kind.places(draft)
            if places[number] and (made := list(kind.at(draft, draw.choice(places[number])))):
                yield draw.choice(made)

    def even_cuts(self, parts: int) -> list[tuple[int, ...]] | None:
        """The topological order in so many runs of about the same work; None where there are fewer operators."""
        order = self._topological
        if parts > len(order):
            return None
        total = sum(self.work)
        bounds, done = [0], 0
        for position, op in enumerate(order):
            done += self.work[op]
            left_parts, left = parts - len(bounds), len(order) - position - 1
            if left_parts and (done * parts >= total * len(bounds) or left == left_parts):
                bounds.append(position + 1)
        bounds.append(len(order))
        if len(set(bounds)) != parts + 1:
            return None
        return [tuple(order[first:end]) for first, end in pairwise(bounds)]

    def balanced_homes(self) -> dict[int, int]:
        """A device for each operator, in topological order: the largest first, each where there is least work."""
        load = [0] * min(self._problem.cluster.size, len(self.work))
        home: dict[int, int] = {}
        for op in sorted(self._topological, key=lambda op: -self.work[op]):
            home[op] = load.index(min(load))
            load[home[op]] += self.work[op]
        return {op: home[op] for op in self._topological}

    def _read_from(self, draft: Draft) -> set[tuple[int, int]]:
        """Pairs of stages of which the second reads from the first."""
        home = {op: at for at, part in enumerate(draft.parts) for op in part.operators}
        return {(home[op], home[b]) for op in home for b in self._after[op] if b in home and home[b] != home[op]}

    def _cut_places(self, draft: Draft) -> list[Place]:
        """Pairs of stages of which one reads from the other, each way round: from which, to which."""
        pairs = self._read_from(draft)
        if draft.chained or draft.routing == "relay":
            pairs |= set(pairwise(range(len(draft.parts))))
        return [place for one, other in sorted(pairs) for place in ((one, other, 0), (other, one, 1))]

    def _cuts_at(self, draft: Draft, place: Place) -> Iterator[Move]:
        """Operators from a stage to the one that reads from it, or back."""
        source, target, back = place
        for moved in self._pieces.ends(draft.parts[source].operators, bool(back)):
            yield "cut", self._moved(draft, source, target, moved)

    def _branch_places(self, draft: Draft) -> list[Place]:
        """Stages of separate pieces, and each piece."""
        pieces = [self._pieces.components(part.operators) for part in draft.parts]
        return [
            (at, piece)
            for at, each in enumerate(pieces)
            if 1 < len(each) <= MOST_PIECES
            for piece in range(len(each))
        ]

    def _branches_at(self, draft: Draft, place: Place) -> Iterator[Move]:
        """The piece to any stage."""
        source, number = place
        piece = self._pieces.components(draft.parts[source].operators)[number]
        for target in range(len(draft.parts)):
            if target != source:
                yield "branch", self._moved(draft, source, target, frozenset(piece))

    def _moved(self, draft: Draft, source: int, target: int, moved: frozenset[int]) -> Draft:
        giver, taker = draft.parts[source], draft.parts[target]
        left = tuple(op for op in giver.operators if op not in moved)
        made = draft.with_part(source, replace(giver, operators=left))
        joined = self._drafting.in_order([*taker.operators, *moved])
        return made.with_part(target, replace(taker, operators=joined))

    def _devices(self, draft: Draft, _: Place) -> Iterator[Move]:
        """Devices from one group to another, to idle ones and back."""
        idle = self._problem.cluster.size // draft.copies - sum(draft.sizes)
        steps = [
            max(draft.parts[at].way.tensor_parallel for at in draft.hosted(g)) for g in range(len(draft.sizes))
        ]
        for taker, size in enumerate(draft.sizes):
            for more in sorted({steps[taker], size, idle - idle % steps[taker]}):
                if 0 < more <= idle:
                    grown = self._resized(draft, {taker: size + more})
                    yield "replicas", grown
                    yield from self._in_turn(grown, taker)
            if size % 2 == 0 and size // 2 >= steps[taker]:
                yield "replicas", self._resized(draft, {taker: size // 2})
            if size > steps[taker]:
                yield "replicas", self._resized(draft, {taker: size - steps[taker]})
            for giver, has in enumerate(draft.sizes):
                step = max(steps[taker], steps[giver])
                for more in sorted({step, has // 2 - has // 2 % step, size}):
                    if giver != taker and 0 < more < has:
                        yield "replicas", self._resized(draft, {taker: size + more, giver: has - more})

    def _in_turn(self, draft: Draft, group: int) -> Iterator[Move]:
        """The replicas of a group take micro-batches in turn, at each size: in sync there must be one for each."""
        for size in self.micro_batches:
            parts = tuple(
                replace(part, micro_batch=size, replicas="round_robin" if part.group == group else part.replicas)
                for part in draft.parts
            )
            yield "replicas in turn", replace(draft, parts=parts)

    @staticmethod
    def _resized(draft: Draft, sizes: dict[int, int]) -> Draft:
        return replace(draft, sizes=tuple(sizes.get(g, size) for g, size in enumerate(draft.sizes)))

    def _sizes(self, draft: Draft, _: Place) -> Iterator[Move]:
        """Micro-batches of the whole plan, and of single stages where stages may differ."""
        offered = [b for b in self.micro_batches if (self._problem.mini_batch // draft.copies) % b == 0]
        common = {part.micro_batch for part in draft.parts}
        for size in offered:
            if common != {size}:
                yield (
                    "micro-batch",
                    replace(draft, parts=tuple(replace(part, micro_batch=size) for part in draft.parts)),
                )
        if self._problem.regime.mode == "async":
            return
        for at, part in enumerate(draft.parts):
            below = [size for size in offered if size < part.micro_batch][-1:]
            above = [size for size in offered if size > part.micro_batch][:1]
            for size in (*below, *above):
                yield "micro-batch of a stage", draft.with_part(at, replace(part, micro_batch=size))

    def _manners(self, draft: Draft, _: Place) -> Iterator[Move]:
        """How operators run (degree, recomputation), and how replicas share micro-batches."""
        for each in self._drafting.ways:
            parts = tuple(replace(part, way=each) for part in draft.parts)
            if parts != draft.parts:
                yield "recomputation or degree", replace(draft, parts=parts)
            for at, part in enumerate(draft.parts):
                if part.way != each and draft.sizes[part.group] % each.tensor_parallel == 0:
                    yield "recomputation or degree of a stage", draft.with_part(at, replace(part, way=each))
        modes: tuple[ReplicaMode, ...] = ("split", "round_robin")
        for mode in modes:
            parts = tuple(replace(part, replicas=mode) for part in draft.parts)
            if parts != draft.parts:
                yield "replicas' mode", replace(draft, parts=parts)
        for at, part in enumerate(draft.parts):
            if draft.sizes[part.group] > part.way.tensor_parallel:
                other = modes[part.replicas == "split"]
                if other == "round_robin":
                    yield from self._in_turn(draft, part.group)
                yield "replicas' mode", draft.with_part(at, replace(part, replicas=other))

    def _join_places(self, draft: Draft) -> list[Place]:
        pairs = {(min(pair), max(pair)) for pair in self._read_from(draft)}
        return sorted(pairs | set(pairwise(range(len(draft.parts)))))

    def _joins_at(self, draft: Draft, place: Place) -> Iterator[Move]:
        """Two stages in one, on the devices of either or, where they are alone there, of both."""
        one, other = place
        first, second = draft.parts[one], draft.parts[other]
        union = self._drafting.in_order([*first.operators, *second.operators])
        alone = len(draft.hosted(first.group)) == len(draft.hosted(second.group)) == 1
        for kept, dropped in ((first, second), (second, first)):
            merged = replace(kept, operators=union)
            parts = tuple(merged if at == one else p for at, p in enumerate(draft.parts) if at != other)
            made = replace(draft, parts=parts)
            if alone and first.group != second.group:
                size = draft.sizes[kept.group] + draft.sizes[dropped.group]
                yield "stages joined", self._resized(made, {kept.group: size}).tidy()
            yield "stages joined", made.tidy()

    def _splits_at(self, draft: Draft, place: Place) -> Iterator[Move]:
        """A stage in two: on its own devices, divided or not, on idle ones, or on those of another stage."""
        (at,) = place
        part = draft.parts[at]
        if len(part.operators) < 2:
            return
        idle = self._problem.cluster.size // draft.copies - sum(draft.sizes)
        for head in self._pieces.heads(part.operators):
            tail = tuple(op for op in part.operators if op not in head)
            first = replace(part, operators=self._drafting.in_order(list(head)))
            size, degree = draft.sizes[part.group], part.way.tensor_parallel
            alone = len(draft.hosted(part.group)) == 1
            halves = {size // 2 // degree * degree, degree, size - degree} if alone else set()
            for given in sorted(halves):
                if 0 < given < size:
                    sizes = (*draft.sizes[: part.group], size - given, *draft.sizes[part.group + 1 :])
                    yield from self._second(draft, at, first, tail, given, sizes)
            for given in sorted({degree, size, idle // degree * degree}):
                if 0 < given <= idle:
                    yield from self._second(draft, at, first, tail, given, draft.sizes)
            for group in range(len(draft.sizes)):
                second = replace(part, operators=tail, group=group)
                parts = (*draft.parts[:at], first, second, *draft.parts[at + 1 :])
                yield "stage split onto shared devices", replace(draft, parts=parts)

    @staticmethod
    def _second(
        draft: Draft, at: int, first: Part, tail: tuple[int, ...], given: int, sizes: tuple[int, ...]
    ) -> Iterator[Move]:
        """The second half of a stage on a group of its own, behind that of the first."""
        new = first.group + 1
        parts = tuple(replace(p, group=p.group + (p.group >= new)) for p in draft.parts)
        second = replace(first, operators=tail, group=new)
        yield (
            "stage split",
            replace(
                draft,
                parts=(*parts[:at], first, second, *parts[at + 1 :]),
                sizes=(*sizes[:new], given, *sizes[new:]),
            ),
        )

    def _homes_at(self, draft: Draft, place: Place) -> Iterator[Move]:
        """A stage on the devices of others; two stages change places."""
        (at,) = place
        part = draft.parts[at]
        for group in range(len(draft.sizes)):
            if group != part.group:
                yield "devices shared", draft.with_part(at, replace(part, group=group)).tidy()
        for other in range(at + 1, len(draft.parts)):
            there = draft.parts[other]
            if there.group != part.group:
                made = draft.with_part(at, replace(part, group=there.group))
                yield "places changed", made.with_part(other, replace(there, group=part.group))

    def _group_places(self, draft: Draft) -> list[Place]:
        """Groups beside each other, where places differ."""
        return list(pairwise(range(len(draft.sizes)))) if self._levels > 1 else []

    def _groups_at(self, draft: Draft, place: Place) -> Iterator[Move]:
        """Two groups change places."""
        one, other = place
        swap = {one: other, other: one}
        sizes = tuple(draft.sizes[swap.get(g, g)] for g in range(len(draft.sizes)))
        parts = tuple(replace(p, group=swap.get(p.group, p.group)) for p in draft.parts)
        yield "places changed", replace(draft, parts=parts, sizes=sizes)

    def _recuts(self, draft: Draft, _: Place) -> Iterator[Move]:
        """As many runs of equal work on each group, in turn or there and back."""
        for rounds in (1, 2, 4):
            for parts in self._rows(len(draft.sizes), rounds, draft.parts[0]):
                yield "even cuts", replace(draft, parts=parts)

    def _rows(self, groups: int, rounds: int, like: Part) -> Iterator[tuple[Part, ...]]:
        """Runs of equal work, `rounds` on each group: in turn, and there and back."""
        contents = self.even_cuts(groups * rounds)
        if contents is None or (rounds > 1 and groups == 1):
            return
        for back in (False, True) if rounds > 1 else (False,):
            parts = []
            for at, operators in enumerate(contents):
                sweep, place = divmod(at, groups)
                group = groups - 1 - place if back and sweep % 2 else place
                parts.append(replace(like, operators=operators, group=group))
            yield tuple(parts)

    def _copies(self, draft: Draft, _: Place) -> Iterator[Move]:
        for factor in divisors(self._problem.cluster.size, self._problem.cluster.size)[1:]:
            if (made := draft.in_copies(factor)) is not None:
                yield "copies", made
            if draft.copies % factor == 0:
                parts = tuple(replace(p, micro_batch=p.micro_batch * factor) for p in draft.parts)
                grown = tuple(size * factor for size in draft.sizes)
                yield "copies", replace(draft, sizes=grown, copies=draft.copies // factor, parts=parts)

    def _routes(self, draft: Draft, _: Place) -> Iterator[Move]:
        if len(draft.parts) > 1:
            yield "order of stages", replace(draft, chained=not draft.chained)
            if self._problem.regime.mode == "async":
                if draft.routing == "relay":
                    yield "routing", replace(draft, routing="direct", chained=True)
                else:
                    yield "routing", replace(draft, routing="relay", chained=True)

    def seeds(self) -> Iterator[Draft]:
        """Rows of stages of equal work and equal groups, each way, at each micro-batch; one stage among them."""
        pins, count = self._problem.pins, self._problem.cluster.size
        numbers = sorted({*replica_counts(count), *filter(None, (pins.pipeline, pins.data_parallel))})
        for stages in numbers:
            for each in self._drafting.ways:
                for replicas in numbers:
                    size = replicas * each.tensor_parallel
                    if stages * size > count:
                        continue
                    for micro_batch in self.micro_batches:
                        like = Part(operators=(), group=0, way=each, micro_batch=micro_batch)
                        for parts in self._rows(stages, pins.virtual_stages or 1, like):
                            yield Draft(parts=parts, sizes=(size,) * stages, chained=stages > 1)

    def even_rows(self) -> Iterator[Draft]:
        """A row of stages of equal work on all devices for each degree, each number of replicas and each size of
        micro-batches of which there are as many as stages.
        """
        count = self._problem.cluster.size
        plain = {each.tensor_parallel: each for each in reversed(self._drafting.ways)}
        for degree, replicas in product(sorted(plain), replica_counts(count)):
            size = degree * replicas
            cuts = self.even_cuts(count // size) if 1 < count // size <= len(self.work) else None
            for micro_batch in self.micro_batches if cuts else ():
                if cuts and micro_batch * len(cuts) <= self._problem.mini_batch:
                    parts = tuple(Part(each, at, plain[degree], micro_batch) for at, each in enumerate(cuts))
                    yield Draft(parts=parts, sizes=(size,) * len(cuts))

    def as_copies(self, draft: Draft) -> Iterator[Draft]:
        """Its replicas as copies of the pipeline, whose stages are nearer; none where all links are alike."""
        if self._levels > 1:
            for factor in divisors(self._problem.cluster.size, self._problem.cluster.size)[1:]:
                if (made := draft.in_copies(factor)) is not None:
                    yield made


def _whole(_: Draft) -> list[Place]:
    """One place: the draft."""
    return [()]


def _stages(draft: Draft) -> list[Place]:
    """Each stage."""
    return [(at,) for at in range(len(draft.parts))]
