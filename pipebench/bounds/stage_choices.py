"""What a run of consecutive operators costs as one stage, in every way to run it: a row for each run and way."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cached_property

import numpy as np

from pipebench.bounds.stage_figures import FAR, MANY, Choice, Figures, StageRows, Within, most_sharers
from pipebench.costs.formula import Formula, Holdings
from pipebench.costs.messages import slowest
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray, whole_bytes
from pipebench.costs.rings import Rings, fastest_ring
from pipebench.costs.sums.intervals import Intervals, touching
from pipebench.costs.weights import (
    WeightPart,
    exchange_ns,
    reduce_ns,
    state_bytes,
    unit_bytes,
    update_ns,
    weight_parts,
)
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Alternative
from pipebench.domain.recomputation import Recompute, permits


class Line:
    """The operators of a problem in one order, and what runs of them cost as stages.

    The order is `OperatorGraph.topological`: that of the profile, where no operator is listed before one that it
    reads from.
    """

    def __init__(self, problem: Problem) -> None:
        graph = problem.profile.graph
        self.problem = problem
        self.order = tuple(graph.topological)
        self.places = len(self.order)
        self.place = {operator: place for place, operator in enumerate(self.order)}
        self.intervals = Intervals(graph, [[operator] for operator in self.order])
        self.formula = Formula(problem.regime, problem.mini_batch)
        self._model = CostModel(problem)
        self._offered: dict[tuple[int, bool], list[list[Alternative | None]]] = {}
        self._held: dict[tuple[int, bool], tuple[IntArray, IntArray]] = {}
        self._least: dict[tuple[int, int, bool], Figures] = {}
        self._sums: dict[tuple[int, int, bool], Figures] = {}
        self._most_live: dict[tuple[int, int, int, Recompute, bool], IntArray] = {}
        self._updates: dict[tuple[int, int, bool], IntArray] = {}
        self._runs = np.triu(np.ones((self.places + 1, self.places + 1), np.bool_), 1)

    def choices(self, micro_batch: int) -> Iterator[Choice]:
        """The choices that may be best for some stage of a plan with this micro-batch.

        Where replicas share a micro-batch, more of them with as many samples each take more devices and a longer
        all-reduce. Only a sharded optimizer gains by them. In turn, more replicas that do not relieve the busiest
        one gain nothing in sync either.
        """
        pins, size = self.problem.pins, self.problem.cluster.size
        # Experts that ranks share out need as many ranks, whatever the replicas of other weights cost.
        sharded = self.problem.regime.shards_optimizer or self.problem.regime.expert_ranks > 1
        runs = self.problem.mini_batch // micro_batch
        seen: set[tuple[bool, int, int]] = set()
        for replicas in range(1, size + 1):
            if pins.data_parallel not in (None, replicas):
                continue
            for turns in dict.fromkeys((1, replicas)):
                samples = micro_batch if turns > 1 else -(-micro_batch // replicas)
                if turns == 1 and replicas > micro_batch:
                    continue
                uneven = turns == 1 and micro_batch % replicas > 0
                if pins.micro_batch_size is not None and (uneven or samples != pins.micro_batch_size):
                    continue
                busiest = -(-runs // turns) if self.problem.regime.mode == "sync" else -turns
                if not sharded and (turns > 1, samples, busiest) in seen:
                    continue
                seen.add((turns > 1, samples, busiest))
                sharers = 1 if turns > 1 else pins.data_parallel or most_sharers(micro_batch, samples, size)
                for degree in self._degrees:
                    if degree * replicas <= size:
                        yield from self._recomputing(replicas, turns, sharers, degree)

    @cached_property
    def _degrees(self) -> list[int]:
        """Devices of a replica that may gain by it: those of alternatives."""
        pins = self.problem.pins
        if pins.tensor_parallel is not None:
            return [pins.tensor_parallel]
        offered = {way.tensor_parallel for each in self._model.times.costs.operators for way in each.alternatives}
        return sorted({1} | offered)

    def _recomputing(self, replicas: int, turns: int, sharers: int, degree: int) -> Iterator[Choice]:
        pin = self.problem.pins.recompute
        if pin in (None, "stage"):
            yield Choice(replicas, turns, sharers, degree, "stage")
        if pin is None:
            yield Choice(replicas, turns, sharers, degree, "none")
        elif all(self._ways(degree, as_layers=True)):
            yield Choice(replicas, turns, sharers, degree, "none", as_layers=True)

    def _ways(self, degree: int, as_layers: bool) -> list[list[Alternative | None]]:
        """For each operator the ways to run it in a stage whose replicas have `degree` devices; None: plainly."""
        key = degree, as_layers
        if key not in self._offered:
            self._offered[key] = self._ways_of(degree, as_layers)
        return self._offered[key]

    def _ways_of(self, degree: int, as_layers: bool) -> list[list[Alternative | None]]:
        operators = self.problem.profile.graph.operators
        pin = self.problem.pins.recompute if as_layers else None
        return [
            [
                way
                for way in (None, *each.alternatives)
                if (way is None or way.tensor_parallel == degree) and permits(pin, operator, way)
            ]
            for operator, each in zip(operators, self._model.times.costs.operators, strict=True)
        ]

    def least(self, samples: int, degree: int, as_layers: bool) -> Figures:
        """The least figures of each operator."""
        key = samples, degree, as_layers
        if key not in self._least:
            self._least[key] = self._least_of(samples, degree, as_layers)
        return self._least[key]

    def _least_of(self, samples: int, degree: int, as_layers: bool) -> Figures:
        ways = self._ways(degree, as_layers)
        if all(way is None for each in ways for way in each):
            terms = self._model.terms(samples)
            forward, backward = terms.forward_ns, terms.backward_ns
            gradient = backward - terms.weight_gradient_ns
            both, crossing = forward + backward, forward + gradient
            return Figures(forward, backward, gradient, both, crossing, terms.saved_bytes)
        times, costs = self._model.times, self._model.times.costs.operators
        least: list[tuple[int, ...]] = []
        saved: list[float] = []
        for operator, offered in enumerate(ways):
            found = [times.choice_ns(operator, "" if way is None else way.id, samples) for way in offered]
            each = [(f, g, g - w, f + g, f + g - w) for f, g, w in found]
            least.append(tuple(map(min, zip(*each, strict=True))))
            saved.append(min((costs[operator] if way is None else way).saved_bytes_per_sample for way in offered))
        forward, backward, gradient, both, crossing = np.array(least, np.int64).T
        kept = whole_bytes(np.array(saved, np.float64) * samples)
        return Figures(forward, backward, gradient, both, crossing, kept)

    def sums(self, samples: int, degree: int, as_layers: bool) -> Figures:
        """The least figures of all runs."""
        key = samples, degree, as_layers
        if key not in self._sums:
            least = self.least(samples, degree, as_layers)
            each = (getattr(least, figure.name) for figure in fields(Figures))
            self._sums[key] = Figures(*map(self.intervals.of_operators, each))
        return self._sums[key]

    def _parts(self, replicas: int, degree: int, as_layers: bool) -> tuple[WeightPart[IntArray], ...]:
        """The least weights of each run on a device, by how many ranks hold the same."""
        alike, experts = self._weights(degree, as_layers)
        return weight_parts(self.problem.regime, alike + experts, experts, replicas, degree)

    def _weights(self, degree: int, as_layers: bool) -> tuple[IntArray, IntArray]:
        """The least weights of each run on a device: those that replicas hold alike, and experts that ranks share
        out.
        """
        key = degree, as_layers
        if key not in self._held:
            self._held[key] = self._weights_of(self._ways(degree, as_layers))
        return self._held[key]

    def _weights_of(self, ways: Sequence[Sequence[Alternative | None]]) -> tuple[IntArray, IntArray]:
        if all(way is None for each in ways for way in each):
            experts = self.intervals.expert_bytes
            return self.intervals.parameter_bytes - experts, experts
        alike, shared = self._least_weights(ways)
        return self._sums_of_weights(alike), self._sums_of_weights(shared)

    def _sums_of_weights(self, each: Sequence[int]) -> IntArray:
        """Sums over each run of what its operators hold.

        Operators that share parameters, directly or by others, count once, with the least that one of them holds.
        """
        graph = self.problem.profile.graph
        leader = list(range(len(graph.operators)))
        first_user: dict[str, int] = {}
        for operator, described in enumerate(graph.operators):
            for name in described.parameters:
                used = first_user.setdefault(name, operator)
                if leader[used] != leader[operator]:
                    old, new = leader[operator], leader[used]
                    leader = [new if each == old else each for each in leader]
        amounts = np.full(len(graph.operators), FAR, np.int64)
        uses: list[list[int]] = [[] for _ in graph.operators]
        for operator, least in enumerate(each):
            amounts[leader[operator]] = min(int(amounts[leader[operator]]), least)
            uses[leader[operator]].append(self.place[operator])
        placed = touching(self.places, [sorted(each) for each in uses], [-1] * len(uses))
        return placed.sums(np.where(amounts == FAR, 0, amounts))

    def _least_weights(self, ways: Sequence[Sequence[Alternative | None]]) -> tuple[list[int], list[int]]:
        """The least weights of each operator on a device: those that replicas hold alike, and experts that ranks
        share out.
        """
        graph = self.problem.profile.graph
        alike, shared = [], []
        for own, experts, each in zip(graph.weight_bytes, graph.expert_weight_bytes, ways, strict=True):
            held = [(own, experts) if way is None else (way.parameter_bytes, way.expert_bytes) for way in each]
            alike.append(min(weights - of_experts for weights, of_experts in held))
            shared.append(min(of_experts for _, of_experts in held))
        return alike, shared

    def _unit_bytes(self, ways: Sequence[Sequence[Alternative | None]], replicas: int, degree: int) -> IntArray:
        """The least weights of each operator that are gathered on a device."""
        alike, experts = (np.array(each, np.int64) for each in self._least_weights(ways))
        return unit_bytes(weight_parts(self.problem.regime, alike + experts, experts, replicas, degree))

    def _update_ns(self, replicas: int, degree: int, as_layers: bool) -> IntArray:
        """The least update of each run, on the innermost levels that its devices can span."""
        key = replicas, degree, as_layers
        if key not in self._updates:
            parts = self._parts(replicas, degree, as_layers)
            reduced = reduce_ns(self.formula, parts, self._rings(replicas, degree))
            self._updates[key] = update_ns(self.formula, reduced, parts)
        return self._updates[key]

    def _rings(self, replicas: int, degree: int) -> Rings:
        """The innermost links that the replicas of a stage can span, by the number of rings."""
        problem = self.problem
        return lambda rings: fastest_ring(problem.cluster, problem.regime, degree * replicas, rings)

    def _exchange_ns(self, choice: Choice) -> tuple[IntArray, IntArray]:
        """The least that the replicas of each run exchange beside a forward and a backward."""
        if not self.problem.regime.shards_weights:
            none = np.zeros_like(self._runs, np.int64)
            return none, none
        parts = self._parts(choice.replicas, choice.degree, choice.as_layers)
        return exchange_ns(self.formula, parts, self._rings(choice.replicas, choice.degree))

    def _live(self, choice: Choice, samples: int) -> IntArray:
        """The most live micro-batches of each run as a stage."""
        replicas = choice.replicas if self.problem.regime.shards_optimizer else 1
        key = samples, replicas, choice.degree, choice.recompute, choice.as_layers
        if key not in self._most_live:
            self._most_live[key] = self._live_of(choice, samples, replicas)
        return self._most_live[key]

    def _live_of(self, choice: Choice, samples: int, replicas: int) -> IntArray:
        intervals, terms = self.intervals, self._model.terms(samples)
        parts = self._parts(replicas, choice.degree, choice.as_layers)
        parameters = parts[0].bytes
        ways = self._ways(choice.degree, choice.as_layers)
        fixed = np.array([min(way.fixed_bytes if way else 0 for way in each) for each in ways], np.int64)
        inputs = np.zeros_like(parameters)
        if choice.recompute == "stage":
            inputs = intervals.incoming_sums(terms.tensor_bytes) + intervals.model_inputs(terms.tensor_bytes)
        exchanged = terms.exchanged_bytes
        content = Holdings(
            state_bytes=state_bytes(self.formula, parts),
            saved_bytes=self.sums(samples, choice.degree, choice.as_layers).saved,
            input_bytes=inputs,
            buffer_bytes=intervals.incoming_sums(exchanged) + intervals.outgoing_sums(exchanged),
            workspace_bytes=intervals.largest(terms.workspace_bytes),
            fixed_bytes=intervals.of_operators(fixed),
            transient_bytes=np.zeros_like(parameters),
            unit_bytes=intervals.largest(self._unit_bytes(ways, replicas, choice.degree)),
        )
        live = self.formula.memory(content, choice.recompute).most_live(self.problem.cluster.memory_bytes)
        return np.minimum(live, MANY)

    def rows(self, micro_batch: int, within: "Within") -> StageRows:
        """The runs under all choices, for plans with this micro-batch."""
        parts = [self._rows_of(choice, micro_batch, within) for choice in self.choices(micro_batch)]
        if not parts:
            none = np.zeros(0, np.int64)
            return StageRows(*(none for _ in fields(StageRows)))
        columns = [each.name for each in fields(StageRows)]
        end = np.concatenate([part.end for part in parts])
        # Equal keys of 16 bits are sorted in one pass each; there are at most as many as operators.
        order = np.argsort(end.astype(np.uint16) if self.places < 2**16 else end, kind="stable")
        return StageRows(*(np.concatenate([getattr(part, name) for part in parts])[order] for name in columns))

    def _rows_of(self, choice: Choice, micro_batch: int, within: "Within") -> StageRows:
        problem, sync = self.problem, self.problem.regime.mode == "sync"
        samples = choice.samples(micro_batch)
        sums = self.sums(samples, choice.degree, choice.as_layers)
        runs = problem.mini_batch // micro_batch
        if sync:
            runs = -(-runs // choice.turns)
        kept = self._runs & within.cuts[:, None] & within.cuts[None, :]
        ranks = problem.regime.expert_ranks
        if choice.devices * problem.regime.context_ranks % ranks or (ranks > 1 and choice.turns > 1):
            kept &= self.intervals.expert_bytes == 0
        if within.most_ns < FAR:
            busy = runs * (sums.backward if problem.overlap else sums.both)
            kept &= busy <= within.most_ns * (1 if sync else choice.turns)
            needed = within.fewest_before[:, None] + within.fewest_behind[None, :]
            kept &= needed + choice.devices <= problem.cluster.size
        if within.memory:
            live = self._live(choice, samples)
            kept &= live > 0
        first, end = np.nonzero(kept)
        forward, backward, input_gradient, both, crossing = (
            each[first, end]
            for each in (sums.forward, sums.backward, sums.input_gradient, sums.both, sums.crossing)
        )
        update = self._update_ns(choice.replicas, choice.degree, choice.as_layers)[first, end]
        of_both, of_crossing = both - forward - backward, crossing - forward - input_gradient
        compute = forward, backward, backward - input_gradient
        there, back = self._exchange_ns(choice)
        exchange = there[first, end], back[first, end]
        times = self.formula.times(compute, update, micro_batch, choice.turns, choice.recompute, exchange)
        # What replicas exchange hides work, and may hide all by which ways differ: the larger of both counts.
        work = self.formula.times(compute, update, micro_batch, choice.turns, choice.recompute)
        input_gradient = work.backward - work.weight_gradient
        both, crossing = work.forward + work.backward + of_both, work.forward + input_gradient + of_crossing
        forward, backward = times.forward, times.backward
        both, crossing = np.maximum(both, forward + backward), np.maximum(crossing, forward + input_gradient)
        # The first forward of a mini-batch has no backward to be paired with.
        alone = 1 if sync else 0
        paired, paired_crossing = both, crossing
        if problem.overlap:
            paired = self.formula.pair_ns(forward, backward, problem.overlap)
            paired_crossing = self.formula.pair_ns(forward, input_gradient, problem.overlap)
        every = np.ones_like(first)
        return StageRows(
            first=first,
            end=end,
            devices=every * choice.devices,
            degree=every * choice.degree,
            again=every * int(choice.recompute == "stage"),
            sharers=every * choice.sharers,
            turns=every * choice.turns,
            runs=every * runs,
            forward=forward,
            backward=backward,
            input_gradient=input_gradient,
            both=both,
            crossing=crossing,
            busy=alone * both + (runs - alone) * paired,
            busy_crossing=alone * crossing + (runs - alone) * paired_crossing,
            update=times.all_reduce + 0 * first,
            live=live[first, end] if within.memory else every * MANY,
        )

    def message_ns(self, micro_batch: int) -> tuple[IntArray, IntArray, IntArray]:
        """What the operator at each place waits for, shape (n + 1,) and twice (devices + 1, n + 1).

        The place that makes the last of what it reads, -1 for none; the ns of the largest message of that place to
        it, and of its gradient back, where min(senders, receivers) is the number of the row. Row 0 means nothing.
        On the innermost links that join two devices.
        """
        graph, cluster, terms = self.problem.profile.graph, self.problem.cluster, self._model.terms(micro_batch)
        made = np.full(self.places + 1, -1, np.int64)
        forward, backward = np.zeros_like(made), np.zeros_like(made)
        for tensor, producer in enumerate(graph.producers):
            if producer < 0:
                continue
            at = self.place[producer]
            for reader in graph.consumers[tensor]:
                place = self.place[reader]
                if at < made[place]:
                    continue
                if at > made[place]:
                    made[place], forward[place], backward[place] = at, 0, 0
                forward[place] = max(int(forward[place]), int(terms.tensor_bytes[tensor]))
                backward[place] = max(int(backward[place]), int(terms.gradient_bytes[tensor]))
        level = slowest(cluster, 0, min(1, cluster.size - 1))
        step = self.problem.regime.step
        splits = step is not None and step.splits_messages
        ranks = [cluster.size if splits else max(1, rank) for rank in range(cluster.size + 1)]
        down = np.array([self.formula.message_ns(level, forward, rank, rank) for rank in ranks])
        up = np.array([self.formula.message_ns(level, backward, rank, rank) for rank in ranks])
        return made, down, up

    def least_before(self, micro_batch: int) -> tuple[IntArray, IntArray]:
        """The least forwards of all operators before each place, and their input gradients on the way back up.

        Shape (devices + 1, n + 1): the row is the number of devices that their stages may take. The way back ends
        with the whole backward of the first operator and with an update. Row 0: `FAR` behind the first place.
        """
        size = self.problem.cluster.size
        shape = size + 1, self.places
        down, up = np.full(shape, FAR, np.int64), np.full(shape, FAR, np.int64)
        whole = np.full(size + 1, FAR, np.int64)
        order = np.array(self.order)
        for choice in self.choices(micro_batch):
            samples = choice.samples(micro_batch)
            least = self.least(samples, choice.degree, choice.as_layers)
            again = least.forward if choice.recompute == "stage" else 0
            n = choice.devices
            down[n] = np.minimum(down[n], least.forward[order])
            up[n] = np.minimum(up[n], (least.input_gradient + again)[order])
            whole[n] = min(int(whole[n]), int((least.backward + again)[order[0]]))
        down, up = np.minimum.accumulate(down, axis=0), np.minimum.accumulate(up, axis=0)
        whole = np.minimum.accumulate(whole)
        up[:, 0] = np.maximum(up[:, 0], whole)
        sums: list[IntArray] = []
        every = int(self.formula.update_ns(0)) if self.problem.regime.mode == "sync" else 0
        for each, last in ((down, 0), (up, every)):
            known = each < FAR
            summed = np.where(known, each, 0).cumsum(axis=1) + last
            before = np.concatenate([np.zeros((size + 1, 1), np.int64), summed], axis=1)
            before[:, 1:][~known.all(axis=1)] = FAR
            sums.append(before)
        return sums[0], sums[1]

    def within(self, work: IntArray, most_ns: int = FAR, parts: int = 0, memory: bool = True) -> Within:
        """The stages of plans of at most that time. work: `least_work`. parts: so many runs at most, 0: all."""
        places = np.arange(self.places + 1)
        share = max(1, -(-self.places // parts)) if parts else 1
        cuts = (places % share == 0) | (places == self.places)
        before = np.maximum(-(-work // max(1, most_ns)), places > 0)
        behind = np.maximum(-(-(work[-1] - work) // max(1, most_ns)), places < self.places)
        return Within(most_ns, before, behind, cuts, memory)

    def least_work(self, micro_batch: int) -> IntArray:
        """The least device time of the operators before each place for one mini-batch, in ns, shape (n + 1,).

        A forward that is paired with a backward may be hidden behind it, so then backwards count alone.
        """
        least = np.full(self.places, FAR, np.int64)
        runs, order = self.problem.mini_batch // micro_batch, np.array(self.order)
        for choice in self.choices(micro_batch):
            each = self.least(choice.samples(micro_batch), choice.degree, choice.as_layers)
            busy = each.backward if self.problem.overlap else each.both
            least = np.minimum(least, runs * choice.devices // choice.turns * busy[order])
        return np.concatenate([[0], least.cumsum()])
