"""1F1B*: the periodic schedule of a plan whose stages form a chain (MadPipe section 4.1)."""

from dataclasses import dataclass

import numpy as np

from pipebench.algorithms.memory_limit import memory_limits
from pipebench.algorithms.periodic import minimal_period, start_times
from pipebench.algorithms.placed import placed_schedule
from pipebench.algorithms.stage_order import Transfer, chain_of_stages, transfers_of
from pipebench.costs.formula import ENDLESS, StageMemory
from pipebench.costs.messages import Message
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.defaults import scheduler_for
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import PeriodicSchedule


@dataclass(frozen=True, slots=True)
class StageChain:
    """A plan as 1F1B* sees it.

    order: stage positions along the chain. forward, backward: ns of the items stage, cut, stage, …, shape
    (2n - 1,). A cut lasts as long as the longest transfer into the stage behind it: where a tensor skips
    stages it is sent just before it is read (and its gradient just after it is made), beside the others.
    """

    order: list[int]
    forward: IntArray
    backward: IntArray
    transfers: list[Transfer]
    edges: list[Message]


def stage_chain(model: CostModel, plan: Plan) -> StageChain:
    """The plan's chain of stages.

    Raises UnsupportedProblem for what 1F1B* cannot run: stages that share a device, differ in micro-batch
    or have k > 1, stages that do not form a chain.
    """
    devices = [device for stage in plan.stages for device in stage.devices]
    if len(devices) != len(set(devices)):
        raise UnsupportedProblem("1F1B* gives every stage devices of its own; this plan shares some")
    if len({stage.micro_batch for stage in plan.stages}) > 1:
        raise UnsupportedProblem("1F1B* needs one micro-batch size; the stages of this plan differ")
    if any(stage.k != 1 for stage in plan.stages):
        raise UnsupportedProblem("1F1B* runs one forward, then one backward; this plan has stages with k > 1")
    order = chain_of_stages(model, plan)
    edges = model.messages(plan)
    transfers = transfers_of(model, plan, edges)
    forward = np.zeros(2 * len(order) - 1, np.int64)
    backward = np.zeros_like(forward)
    for place, stage in enumerate(order):
        times = model.stage_times(plan.stages[stage], plan)
        forward[2 * place], backward[2 * place] = times.forward, times.backward
        into = [t for t in transfers if t.target == stage]
        if into:
            forward[2 * place - 1] = max(t.forward_ns for t in into)
            backward[2 * place - 1] = max(t.backward_ns for t in into)
    return StageChain(order, forward, backward, transfers, edges)


def one_f_one_b_star(model: CostModel, plan: Plan) -> PeriodicSchedule:
    """The 1F1B* pattern of shortest period whose memory fits: inside the reserve if possible, else at all.

    Each stage also keeps to its `in_flight`, where the plan sets one. On links of mode `half` no pattern of
    a chain plan that sends tensors only to the next stage is shorter (MadPipe, Proposition 1, with each
    stage's forward and backward uninterrupted); other link modes and tensors that skip stages might allow a
    shorter one. Raises UnsupportedProblem (sync, or see stage_chain) and InfeasibleProblem naming the stage
    that does not fit with one micro-batch in flight.
    """
    if model.problem.regime.mode != "async":
        hint = f"use {scheduler_for('sync')} for sync"
        raise UnsupportedProblem("1F1B* has no flush: it schedules the async regime only", hint)
    chain = stage_chain(model, plan)
    memory = [model.stage_memory(plan, stage, chain.edges) for stage in chain.order]
    limits = [memory_limits(model.problem, plan.stages[stage].devices) for stage in chain.order]
    for choice in (0, -1):
        live = [
            _most_live(plan, stage, memory[place], limits[place][choice])
            for place, stage in enumerate(chain.order)
        ]
        period = int(minimal_period(chain.forward + chain.backward, np.array(live, np.int64)))
        if period > 0:
            return _pattern(chain, period)
    place = next(place for place, most in enumerate(live) if most < 1)
    needed, has = memory[place].peak(1), limits[place][-1]
    raise InfeasibleProblem(
        f"stage {chain.order[place]} needs {needed} bytes on each device with one micro-batch in flight, "
        f"its devices have {has}: {needed - has} too many",
        "cut it into smaller stages, or use a smaller micro-batch",
    )


def _most_live(plan: Plan, stage: int, memory: StageMemory, limit: int) -> int:
    """Micro-batches that the stage may have in flight within `limit` bytes; below 1: it does not fit."""
    described = plan.stages[stage]
    most = max(1, described.in_flight // described.micro_batch) if described.in_flight else ENDLESS
    return min(most, memory.most_live(limit))


def _pattern(chain: StageChain, period: int) -> PeriodicSchedule:
    forward_start, backward_start = start_times(chain.forward, chain.backward, period)
    place = {stage: position for position, stage in enumerate(chain.order)}
    operations = [(stage, "F", forward_start[2 * i]) for i, stage in enumerate(chain.order)]
    operations += [(stage, "B", backward_start[2 * i]) for i, stage in enumerate(chain.order)]
    sends = [(t.source, t.target, "F", forward_start[2 * place[t.target] - 1]) for t in chain.transfers]
    sends += [(t.target, t.source, "B", backward_start[2 * place[t.target] - 1]) for t in chain.transfers]
    return placed_schedule(period, operations, sends)
