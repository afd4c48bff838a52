"""Order within a lane: F before its backward, I before W, R behind the stage's last backward."""

import numpy as np

from pipebench.check.tasks import R, Tasks
from pipebench.domain.verdict import Witness


def wrong_lane_order(tasks: Tasks) -> Witness | None:
    """The first task that stands before one that it needs in its own stage (GraphPipe section 4, C4)."""
    for needs, needed in ((tasks.gradient, tasks.forward), (tasks.release, tasks.gradient)):
        wrong = needs < needed
        if wrong.any():
            slot = int(np.argmax(wrong))
            return _witness(tasks, int(needs[slot]), int(needed[slot]))
    last_backward = tasks.last_release
    reduces = np.flatnonzero(tasks.kind == R)
    early = reduces[reduces < last_backward[tasks.stage[reduces]]]
    if len(early):
        return _witness(tasks, int(early[0]), int(last_backward[tasks.stage[early[0]]]))
    return None


def _witness(tasks: Tasks, early: int, needed: int) -> Witness:
    message = f"{tasks.name(early)} stands before {tasks.name(needed)}, which it needs"
    return Witness(
        rule="C4", message=message, stage=int(tasks.stage[early]), micro_batch=int(tasks.micro_batch[early])
    )
