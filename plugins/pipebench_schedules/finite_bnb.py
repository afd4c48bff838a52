"""The scheduler `finite-bnb`: branch and bound for the shortest order of the tasks of a mini-batch."""

from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem, PipebenchError
from pipebench.domain.limits import MOST_NS
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.hooks.context import Context
from pipebench.simulation.step_time import PricedPlan
from pipebench_schedules.finite_tasks import JobShop, job_shop
from pipebench_schedules.order_tree import Orders, OrderTree, Spent
from pipebench_schedules.plugin import FiniteBranchOptions
from pipebench_schedules.refusals import declares
from pipebench_schedules.shared_lanes import shared_lane

LOOK_AT_CLOCK = 64
"""Nodes between two looks at the clock."""


def schedule(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """The shortest order whose memory fits: inside the reserve if possible, else at all.

    Stages keep to what they declare in flight. Without pairs of tasks at once. Proven shortest unless counter
    `unproven` is set: then a tree met its limit of nodes, or the time was over. Gradients are whole in the first
    tree, split in the next.
    Raises UnsupportedProblem (finite_tasks.job_shop), InfeasibleProblem where no order fits or takes as little as
    asked, and where none was found in so many nodes.
    """
    options = context.options
    assert isinstance(options, FiniteBranchOptions)
    model = CostModel(problem)
    shops = [job_shop(problem, plan, False, model)]
    if any(model.stage_times(stage, plan).weight_gradient for stage in plan.stages):
        shops.append(job_shop(problem, plan, True, model))
    search = _Search(plan, model, context, options.nodes)
    for limit in range(len(shops[0].limits[0])):
        search.run(shops, limit, options.below_ns or MOST_NS)
        if search.best is not None:
            break
    context.count("nodes", search.nodes)
    context.count("unproven", int(search.cut))
    if search.best is None:
        below = f" and takes less than {options.below_ns} ns" if options.below_ns else ""
        sure = f"was found in {search.nodes} nodes" if search.cut else "exists"
        kept = ", keeps to what stages declare in flight" if declares(plan) else ""
        raise InfeasibleProblem(f"no order of this plan that fits in memory{kept}{below} {sure}")
    return search.best


class _Search:
    """Tree after tree. nodes: looked at so far. cut: whether one of them was left before its end."""

    def __init__(self, plan: Plan, model: CostModel, context: Context, most: int) -> None:
        self._plan, self._model, self._context = plan, model, context
        self._priced = PricedPlan.of(model, plan)
        self._most = most
        self.nodes = self._until = 0
        self.cut = False
        self.best: FiniteSchedule | None = None
        self.best_ns = MOST_NS

    def run(self, shops: list[JobShop], limit: int, below_ns: int) -> None:
        """The shortest order in all shops under that limit of memory, if it is below."""
        self.best, self.best_ns = None, below_ns
        for shop in shops:
            # Of contended links the tree of active orders finds good ones; only the other one proves anything.
            for any_order in (False, True) if shop.contended else (False,):
                done = self._tree(shop, limit, any_order)
                if any_order or not shop.contended:
                    self.cut |= not done

    def _tree(self, shop: JobShop, limit: int, any_order: bool) -> bool:
        """One tree; whether it was seen to its end."""
        tree = OrderTree(shop, limit, any_order, lambda orders: self._length(shop, orders), self._count)
        self._until = self.nodes + self._most
        try:
            tree.search(self.best_ns)
            return True
        except Spent:
            return False
        finally:
            if tree.best is not None:
                self.best, self.best_ns = self._schedule(shop, tree.best), tree.best_ns

    def _count(self) -> None:
        if self.nodes >= self._until:
            raise Spent
        self.nodes += 1
        if self.nodes % LOOK_AT_CLOCK == 0 and self._context.out_of_time():
            raise Spent

    def _length(self, shop: JobShop, orders: Orders) -> int | None:
        try:
            return self._priced.ns_of(self._schedule(shop, orders))
        except PipebenchError:
            return None

    def _schedule(self, shop: JobShop, orders: Orders) -> FiniteSchedule:
        return FiniteSchedule(
            lanes=tuple(
                shared_lane(
                    self._model,
                    self._plan,
                    list(stages),
                    [(shop.kind[task], shop.stage[task], shop.micro_batch[task]) for task in order],
                )
                for stages, order in zip(shop.stages, orders, strict=True)
            )
        )
