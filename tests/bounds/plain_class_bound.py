"""The bound over stages in a row in plain Python: one stage, one figure at a time, with costs by the cost model.

For problems on one link level, with one way to run each operator and nothing pinned.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pipebench.costs.formula import Formula
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem

Tail = tuple[int, int, int]
"""The least pass, crossing and whole, as in `Tails`."""


@dataclass(frozen=True, slots=True)
class Costs:
    """One stage of a plan. live: 0 where none fits."""

    forward: int
    backward: int
    gradient: int
    update: int
    live: int


class Plain:
    """The conditions for one micro-batch size."""

    def __init__(self, problem: Problem, micro_batch: int) -> None:
        self.problem, self.micro_batch = problem, micro_batch
        self.model = CostModel(problem)
        self.formula = Formula(problem.regime, problem.mini_batch)
        self.graph = problem.profile.graph
        self.names = [op.name for op in self.graph.operators]
        self.count = problem.mini_batch // micro_batch
        self.sync = problem.regime.mode == "sync"
        self._costs: dict[tuple[int, int, Stage], Costs] = {}

    def ways(self, devices: int) -> Iterator[Stage]:
        for replicas in range(1, devices + 1):
            for in_turn in (False, True):
                if (in_turn and replicas == 1) or (not in_turn and replicas > self.micro_batch):
                    continue
                for again in (False, True):
                    yield Stage(
                        operators=("any",), devices=tuple(range(replicas)), data_parallel=replicas,
                        micro_batch=self.micro_batch, replicas="round_robin" if in_turn else "split",
                        recompute="stage" if again else "none",
                    )  # fmt: skip

    def costs(self, first: int, end: int, way: Stage) -> Costs:
        key = first, end, way
        if key not in self._costs:
            stages: list[Stage] = []
            parts = (self.names[:first], None), (self.names[first:end], way), (self.names[end:], None)
            for names, like in parts:
                if not names:
                    continue
                base = sum(stage.data_parallel for stage in stages)
                number = like.data_parallel if like else 1
                stage = Stage(
                    operators=tuple(names), devices=tuple(range(base, base + number)), data_parallel=number,
                    micro_batch=self.micro_batch, replicas=like.replicas if like else "split",
                    recompute=like.recompute if like else "none",
                )  # fmt: skip
                stages.append(stage)
            plan = Plan(stages=tuple(stages))
            at = 1 if first else 0
            times = self.model.stage_times(plan.stages[at], plan)
            memory = self.model.stage_memory(plan, at, self.model.messages(plan))
            self._costs[key] = Costs(
                forward=times.forward, backward=times.backward, gradient=times.backward - times.weight_gradient,
                update=times.all_reduce, live=memory.most_live(self.problem.cluster.memory_bytes),
            )  # fmt: skip
        return self._costs[key]

    def last_input(self, place: int) -> tuple[int, list[int]]:
        """The last operator that the one at `place` reads from, and the tensors that it reads of it."""
        read = [t for t, readers in enumerate(self.graph.consumers) if place in readers]
        made = max((self.graph.producers[t] for t in read), default=-1)
        return made, [t for t in read if self.graph.producers[t] == made and made >= 0]

    def message(self, place: int, ranks: int) -> tuple[int, int]:
        """The least ns of the messages to the operator at `place` and of the gradients back."""
        step = self.problem.regime.step
        ranks = self.problem.cluster.size if step is not None and step.splits_messages else ranks
        level, (_, tensors) = self.problem.cluster.levels[0], self.last_input(place)
        down = [self.model.tensor_bytes(t, self.micro_batch) for t in tensors]
        up = [self.model.gradient_bytes(t, self.micro_batch) for t in tensors]
        least = Formula.message_ns
        return (
            least(level, max(down, default=0), ranks, ranks),
            least(level, max(up, default=0), ranks, ranks),
        )

    def before(self, place: int, left: int) -> tuple[int, int]:
        """The least ns of all operators before a place, down and up, on `left` devices."""
        if place == 0:
            return 0, self.formula.update_ns(0)
        down = up = 0
        for op in range(place):
            every = [self.costs_alone(op, way) for way in self.ways(left)]
            down += min(forward for forward, _, _ in every)
            least = min(gradient for _, _, gradient in every)
            up += max(least, min(backward for _, backward, _ in every)) if op == 0 else least
        return down, up + self.formula.update_ns(0)

    def costs_alone(self, op: int, way: Stage) -> tuple[int, int, int]:
        """Forward, backward and input gradient of one operator."""
        forward, backward = (int(ns[op]) for ns in self.model.times.at(self.model.local_samples(way)))
        weight = int(self.model.times.weight_gradient_at(self.model.local_samples(way))[op])
        again = forward if way.recompute == "stage" else 0
        return forward, backward + again, backward - weight + again

    def sharers(self, way: Stage) -> int:
        """The most replicas with as many samples each: how the search counts them."""
        if way.turns > 1:
            return 1
        samples = self.model.local_samples(way)
        most = range(1, min(self.problem.cluster.size, self.micro_batch) + 1)
        return max(d for d in most if -(-self.micro_batch // d) == samples)

    def possible(self, time_ns: int) -> bool:
        time_ns -= 0 if self.sync else time_ns % self.count
        size, places = self.problem.cluster.size, len(self.names)
        # By place, devices and whether the first stage there has one replica.
        tails: dict[tuple[int, int, bool], Tail] = {(places, 0, False): (0, 0, 0)}
        for end in range(places, 0, -1):
            for used in range(size):
                for alone in (False, True):
                    if (end, used, alone) in tails:
                        self.extend(tails, end, used, time_ns)
                        break
        return any((0, n, alone) in tails for n in range(size + 1) for alone in (False, True))

    def extend(self, tails: dict[tuple[int, int, bool], Tail], end: int, used: int, time_ns: int) -> None:
        places = len(self.names)
        mode = self.problem.cluster.link_mode
        step = self.problem.regime.step
        for first in range(end):
            for way in self.ways(self.problem.cluster.size - used):
                left = self.problem.cluster.size - used - way.data_parallel
                if first and not left:
                    continue
                stage, sends = self.costs(first, end, way), end < places and self.last_input(end)[0] >= first
                if not stage.live:
                    continue
                shares = step is not None and step.splits_messages
                linked = sends and way.turns == 1
                wait = self.message(end, min(self.sharers(way), used)) if sends else (0, 0)
                known = [tails[end, used, False]] if (end, used, False) in tails else []
                gone = [each[0] + sum(wait) for each in known]
                if (end, used, True) in tails:
                    down, up = self.message(end, 1)
                    load = {"half": down + up, "full": max(down, up), "delay": 0}[mode] if linked else 0
                    if shares or self.count * load <= time_ns:
                        known.append(tails[end, used, True])
                        away = known[-1][0] + sum(wait)
                        if not self.sync and linked and mode == "half" and not shares and down and up:
                            away = no_collision(away, sum(wait), max(1, time_ns // self.count))
                        gone.append(away)
                if not known:
                    continue
                later = [min(gone) - sum(wait), *(min(each) for each in list(zip(*known, strict=True))[1:])]
                tail = self.tail(stage, way, later, wait, end == places, first, left, time_ns)
                if tail is None:
                    continue
                key = first, used + way.data_parallel, way.turns == 1 and self.sharers(way) == 1
                old = tails.get(key, tail)
                tails[key] = min(old[0], tail[0]), min(old[1], tail[1]), min(old[2], tail[2])

    def tail(
        self, stage: Costs, way: Stage, later: list[int], wait: tuple[int, int], last: bool, first: int, left: int,
        time_ns: int,
    ) -> Tail | None:  # fmt: skip
        """With this stage in front, None where the time cannot be met."""
        f, g, i, down, up = stage.forward, stage.backward, stage.gradient, *wait
        away = later[0] + down + up
        overlap = self.problem.overlap
        pair, pair_crossing = self.formula.pair_ns(f, g, overlap), self.formula.pair_ns(f, i, overlap)
        if not self.sync:
            lane = max(1, time_ns // self.count) * way.turns
            stay = away + f + g
            if not overlap:
                stay = no_collision(stay, f + g, lane)
            if self.count * pair > time_ns * way.turns or stay > stage.live * lane:
                return None
            return stay, 0, 0
        runs = -(-self.count // way.turns)
        figures = []
        for paired, back, each in ((pair_crossing, i, f + i), (pair, g, f + g)):
            least = max(each + (runs - 1) * paired, f + away + runs * back, runs * f + away + back)
            rounds = -(-runs // stage.live)
            odd = runs - 1 - (rounds - 1) * min(stage.live, runs)
            stay = away + each
            figures.append(max(least, min(rounds * stay + odd * max(f, back), (rounds + 1) * stay)))
        crossing, whole = figures[0], figures[1] + stage.update
        behind = 0 if last else later[1] + down + up
        crossing, whole = max(crossing, behind + f + i), max(whole, behind + f + g + stage.update)
        if not last:
            whole = max(whole, later[2] + down + f)
        begin, end = self.before(first, left) if first else (0, self.formula.update_ns(0))
        if first and self.last_input(first)[0] == first - 1:
            before = self.message(first, min(self.sharers(way), left))
            begin, end = begin + before[0], end + before[1]
        if begin + whole > time_ns or begin + crossing + end > time_ns:
            return None
        return away + f + i, crossing, whole


def no_collision(length: int, busy: int, period: int) -> int:
    """The next length with which two tasks of `busy` ns in all, its first and its last, do not overlap."""
    return next(n for n in range(length, length + busy + 1) if not 0 < n % period < busy)


def plain_class_bound(problem: Problem) -> int:
    """The least time that the conditions leave, over all micro-batches."""
    best: int | None = None
    for micro_batch in (b for b in range(1, problem.mini_batch + 1) if problem.mini_batch % b == 0):
        plain = Plain(problem, micro_batch)
        high = 1 if best is None else best
        if best is None:
            while not plain.possible(high):
                if high > 2**30:
                    break
                high *= 2
            else:
                best = _least(plain, high)
        elif plain.possible(best):
            best = _least(plain, best)
    assert best is not None
    return best


def _least(plain: Plain, high: int) -> int:
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        if plain.possible(middle):
            high = middle
        else:
            low = middle
    return high if plain.sync else -(-high // plain.count) * plain.count
