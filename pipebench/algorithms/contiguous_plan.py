"""A swept partition as a plan with its 1F1B* schedule."""

from collections.abc import Sequence
from itertools import pairwise

from pipebench.algorithms.chain import Chain
from pipebench.algorithms.contiguous_sweep import Sweep
from pipebench.algorithms.idle_devices import idle_devices
from pipebench.algorithms.linearise import crosses_twice
from pipebench.algorithms.micro_batches import micro_batch_notices
from pipebench.algorithms.one_f_one_b_star import one_f_one_b_star
from pipebench.algorithms.periodic import groups
from pipebench.costs.model import CostModel
from pipebench.defaults import ONE_F_ONE_B_STAR
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.result import PlanResult

NS = 1e-9


def contiguous_plan(
    model: CostModel, chain: Chain, bounds: tuple[int, ...], live: Sequence[int] | None = None
) -> Plan:
    """Stages [bounds[i], bounds[i + 1]) of the chain on one device each, with `live` micro-batches in flight.

    Devices 0, 1, … on a cluster of one link level, else the last ones (see Chain). Relayed where a tensor
    crosses two of the cuts; where no tensor crosses a cut an order edge keeps the chain.
    """
    cuts = [bound - 1 for bound in bounds[1:-1]]
    stages = len(bounds) - 1
    first_device = 0 if chain.one_level else model.problem.cluster.size - stages
    return Plan(
        stages=tuple(
            Stage(
                operators=tuple(
                    model.graph.operators[op].name for ops in chain.layers.operators[first:end] for op in ops
                ),
                devices=(first_device + position,),
                micro_batch=chain.micro_batch,
                in_flight=live[position] * chain.micro_batch if live else 0,
                recompute=chain.recompute,
            )
            for position, (first, end) in enumerate(pairwise(bounds))
        ),
        order_edges=tuple((i, i + 1) for i, cut in enumerate(cuts) if not chain.layers.crossing[cut]),
        routing="relay" if crosses_twice(chain.layers, cuts) else "direct",
    )


def contiguous_result(model: CostModel, found: Sweep, notices: tuple[str, ...] = ()) -> PlanResult:
    """The plan, its schedule, what it claims and what was proven of it, in seconds for one mini-batch.

    On links that carry both directions at once the plan may run faster than claimed: 1F1B* lets them take turns.
    """
    bounds = found.partition.bounds
    live = [int(group) for group in groups(found.chain.items(bounds), found.partition.period_ns)[::2]]
    plan = contiguous_plan(model, found.chain, bounds, live)
    cluster = model.problem.cluster
    scope = "contiguous, one micro-batch size, "
    scope += "1F1B*" if cluster.link_mode == "half" else "any periodic order"
    if not found.chain.one_level:
        scope += ", consecutive devices"
    if found.memory < cluster.memory_bytes:
        scope += ", memory less the reserve"
    optimal = found.lower_ns in (0, found.mini_batch_ns)
    return PlanResult(
        plan=plan,
        schedule=one_f_one_b_star(model, plan),
        scheduler=ONE_F_ONE_B_STAR,
        claimed_s=found.mini_batch_ns * NS,
        claimed_native=float(found.partition.period_ns),
        claimed_unit="ns a micro-batch",
        lower_bound_s=found.lower_ns * NS if found.lower_ns is not None else None,
        bound_scope=scope if found.lower_ns is not None else "",
        termination="optimal" if optimal else "heuristic" if found.complete else "limit",
        notices=(*_notices(model, plan), *notices),
    )


def _notices(model: CostModel, plan: Plan) -> tuple[str, ...]:
    relayed = "the graph is cut in topological order; tensors that skip stages are passed on from stage to stage"
    return (
        *((relayed,) if plan.routing == "relay" else ()),
        *micro_batch_notices(model.problem),
        *idle_devices(model.problem, plan),
    )
