"""The best strategy within a memory limit: Lagrangian bounds, closed by branching until they meet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count

import numpy as np

from pipebench.costs.formula import Formula
from pipebench.costs.sharded_stage import ShardedStage
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Stage
from pipebench.domain.problem import Problem
from pipebench.domain.profile import OperatorCosts
from pipebench.hooks.context import DeadlineReached
from pipebench_pase.elimination import Costs, find_best
from pipebench_pase.ordering import EliminationOrder
from pipebench_pase.space import ConfigurationSpace, FloatArray, IntArray


def memory_tables(problem: Problem, samples: int, spaces: Sequence[ConfigurationSpace]) -> list[IntArray]:
    """For each operator: bytes of its weights' state and of what it saves of one micro-batch, by configuration.

    They add to `besides_bytes`. Weights of several operators count with each of them. Operators of one space with
    equal figures share an array.
    """
    graph = problem.profile.graph
    costs = {each.operator: each for each in problem.profile.on(problem.cluster.devices[0]).operators}
    made: dict[object, IntArray] = {}
    found = []
    for operator, space in zip(graph.operators, spaces, strict=True):
        weights = tuple(graph.parameter_bytes[name] for name in operator.parameters)
        sizes = tuple(graph.tensors[graph.tensor_index[name]].forward_bytes_per_sample for name in operator.inputs)
        key = id(space), weights, sizes, costs[operator.name].saved_bytes_per_sample
        if key not in made:
            made[key] = np.array(
                [
                    _added_bytes(problem, samples, operator.name, space.split(number), costs)
                    for number in range(len(space.configurations))
                ],
                np.int64,
            )
        found.append(made[key])
    return found


def _added_bytes(
    problem: Problem, samples: int, name: str, split: dict[str, int], costs: dict[str, OperatorCosts]
) -> int:
    devices = tuple(range(problem.cluster.size))
    stage = Stage(
        operators=(name,),
        devices=devices,
        tensor_parallel=len(devices),
        micro_batch=samples,
        sharding=(split,),
    )
    alone = ShardedStage(problem.profile.graph, stage, samples, problem.cluster)
    formula = Formula(problem.regime, problem.mini_batch)
    state = alone.weight_state(formula, 1) - formula.state_bytes(0, 1)
    return state + formula.live_bytes(alone.saved_bytes(costs)) - formula.live_bytes(0)


def besides_bytes(problem: Problem) -> int:
    """What the stage holds besides `memory_tables`: a stage without operators, and the largest scratch memory."""
    operators = problem.profile.on(problem.cluster.devices[0]).operators
    every = Formula(problem.regime, problem.mini_batch).every_stage()
    return every.peak(1) + max(each.workspace_bytes for each in operators)


def has_shared_weights(problem: Problem) -> bool:
    """Whether several operators use one parameter: then `memory_tables` may count more than the suite does."""
    used = [name for operator in problem.profile.graph.operators for name in operator.parameters]
    return len(used) > len(set(used))


def too_little_memory(
    planner: str, problem: Problem, samples: int, memory: Sequence[IntArray]
) -> InfeasibleProblem:
    """What to raise where not even the strategy of least memory fits: says how many bytes are lacking."""
    least, there = sum(int(each.min()) for each in memory) + besides_bytes(problem), problem.cluster.memory_bytes
    return InfeasibleProblem(
        f"{planner} needs {least} bytes on each device for {samples} samples at once, devices have "
        f"{there} bytes: {least - there} bytes are lacking",
        "pin a smaller micro-batch, or use more devices",
    )


BISECTIONS = 24
Window = tuple[int, int]
"""Bytes that an operator may take: more than the first, at most the second."""


@dataclass(frozen=True, slots=True)
class LimitedStrategy:
    """The result of a search with a memory limit.

    strategy: the best that fits, None where none does.
    bound: no strategy that fits costs less.
    proven: the strategy costs no more than the bound.
    """

    strategy: tuple[int, ...] | None
    cost: float
    bound: float
    solved: int
    proven: bool


@dataclass(frozen=True, slots=True)
class _SearchNode:
    bound: float
    low: tuple[int, ...]
    windows: tuple[Window, ...]


def find_best_within(
    costs: Costs,
    memory: Sequence[IntArray],
    limit_bytes: int,
    order: EliminationOrder,
    most: int,
    check: Callable[[], None] = lambda: None,
) -> LimitedStrategy:
    """The strategy of the least cost whose memory adds up to at most the limit.

    memory: bytes of each configuration of each vertex. most: eliminations after which the search ends, as it does
    where `check` says that the time is over: with the best so far and the bound that is proven.
    Raises what `check` raises where no strategy was found by then.
    """
    search = _BranchAndBound(costs, memory, limit_bytes, order, check)
    ticket = count()
    whole = tuple((-1, int(each.max())) for each in memory)
    if sum(int(each.min()) for each in memory) > limit_bytes:
        return LimitedStrategy(None, np.inf, np.inf, 0, True)
    waiting: list[tuple[float, int, _SearchNode]] = []
    bound = 0.0
    try:
        root = search.node(whole)
        if root is not None:
            heappush(waiting, (root.bound, next(ticket), root))
        while waiting:
            bound, _, node = heappop(waiting)
            if bound >= search.cost * (1 - 1e-12):
                break
            if search.solved >= most:
                return LimitedStrategy(search.strategy, search.cost, bound, search.solved, False)
            for windows in search.branches(node):
                child = search.node(windows)
                if child is not None:
                    least = max(child.bound, node.bound)
                    heappush(waiting, (least, next(ticket), replace(child, bound=least)))
    except DeadlineReached:
        if search.strategy is None:
            raise
        return LimitedStrategy(search.strategy, search.cost, bound, search.solved, False)
    return LimitedStrategy(search.strategy, search.cost, search.cost, search.solved, True)


class _BranchAndBound:
    """The best strategy so far, and the bounds of nodes."""

    def __init__(
        self,
        costs: Costs,
        memory: Sequence[IntArray],
        limit_bytes: int,
        order: EliminationOrder,
        check: Callable[[], None],
    ) -> None:
        self.costs, self.memory, self.limit = costs, memory, limit_bytes
        self.order, self.check = order, check
        self.strategy: tuple[int, ...] | None = None
        self.cost = np.inf
        self.solved = 0

    def node(self, windows: tuple[Window, ...]) -> _SearchNode | None:
        """The bound of these windows; None where nothing in them fits or could be better than the best."""
        least = sum(
            int(each[(each > above) & (each <= most)].min(initial=self.limit + 1))
            for each, (above, most) in zip(self.memory, windows, strict=True)
        )
        if least > self.limit:
            return None
        cheap, low = self._solve(0.0, windows)
        used = self._bytes(low)
        if used <= self.limit:
            return None
        bound, price = cheap, cheap / max(used, 1)
        below, above = 0.0, price
        for _ in range(BISECTIONS):
            value, found = self._solve(price, windows)
            excess = self._bytes(found) - self.limit
            bound = max(bound, value - price * self.limit)
            if bound >= self.cost * (1 - 1e-12):
                return None
            if excess > 0:
                below, low = price, found
                price = 2 * price if above == price else (below + above) / 2
                above = price if above < price else above
            elif excess == 0:
                return None
            else:
                above = price
                price = (below + above) / 2
            if above - below <= 1e-9 * above:
                break
        return _SearchNode(bound, low, windows)

    def branches(self, node: _SearchNode) -> list[tuple[Window, ...]]:
        """Two halves of the node, by the bytes of the operator that could save the most of them."""
        spans = [
            int(each[number]) - int(each[(each > above) & (each <= most)].min())
            for each, number, (above, most) in zip(self.memory, node.low, node.windows, strict=True)
        ]
        vertex = int(np.argmax(spans))
        above, most = node.windows[vertex]
        middle = int(self.memory[vertex][node.low[vertex]]) - 1 - spans[vertex] // 2
        return [
            (*node.windows[:vertex], window, *node.windows[vertex + 1 :])
            for window in ((above, middle), (middle, most))
        ]

    def _solve(self, price: float, windows: tuple[Window, ...]) -> tuple[float, tuple[int, ...]]:
        """The least of cost + price x memory; arrays of one origin stay one, so that equal parts are reused."""
        self.check()
        self.solved += 1
        made: dict[object, FloatArray] = {}
        vertices = []
        for own, held, window in zip(self.costs.vertices, self.memory, windows, strict=True):
            key = id(own), id(held), window
            if key not in made:
                outside = (held <= window[0]) | (held > window[1])
                made[key] = np.where(outside, np.inf, own + price * held)
            vertices.append(made[key])
        best = find_best(Costs(vertices, self.costs.pairs), self.order)
        if self._bytes(best.strategy) <= self.limit:
            cost = self.costs.of(best.strategy)
            if cost < self.cost:
                self.cost, self.strategy = cost, best.strategy
        return best.cost, best.strategy

    def _bytes(self, strategy: Sequence[int]) -> int:
        return sum(int(each[number]) for each, number in zip(self.memory, strategy, strict=True))
