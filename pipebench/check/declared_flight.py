"""What a stage declares to keep in flight (Stage.in_flight) against what its schedule keeps."""

from collections.abc import Iterable

import numpy as np

from pipebench.check.periodic_memory import live_at
from pipebench.check.periodic_operations import Pattern
from pipebench.check.tasks import B, F, Tasks, W
from pipebench.domain.plan import Plan
from pipebench.domain.verdict import Witness


def finite_excess(plan: Plan, tasks: Tasks) -> Witness | None:
    """The first stage that keeps more in flight than it declares; the witness names the F that is one too many.

    tasks: of a valid order. In flight is what is live for the memory: from F to B, or W where B is split.
    """
    for position in _declaring(plan):
        stage = plan.stages[position]
        rows = np.flatnonzero(tasks.stage == position)
        kind = tasks.kind[rows]
        live = np.cumsum((kind == F).astype(np.int64) - ((kind == B) | (kind == W)))
        over = live * stage.micro_batch > stage.in_flight
        if over.any():
            one_too_many = int(tasks.micro_batch[rows[np.argmax(over)]])
            return _witness(plan, position, int(live.max()), one_too_many)
    return None


def periodic_excess(plan: Plan, pattern: Pattern) -> Witness | None:
    """The first stage that keeps more in flight in the steady state than it declares."""
    for position in _declaring(plan):
        forward, backward = pattern.forward[position], pattern.backward[position]
        # Only the start of F adds one. A stage whose F and B take no time still runs one.
        live = max(1, live_at(forward.start, backward.end, forward.start, pattern.period))
        if live * plan.stages[position].micro_batch > plan.stages[position].in_flight:
            return _witness(plan, position, live, None)
    return None


def _declaring(plan: Plan) -> Iterable[int]:
    return (position for position, stage in enumerate(plan.stages) if stage.in_flight)


def _witness(plan: Plan, position: int, live: int, micro_batch: int | None) -> Witness:
    stage = plan.stages[position]
    message = (
        f"stage {position} declares {stage.in_flight} samples in flight, "
        f"its schedule keeps {live * stage.micro_batch} ({live} micro-batches of {stage.micro_batch})"
    )
    return Witness(rule="shape", message=message, stage=position, micro_batch=micro_batch)
