"""Gradients summed over replicas, and the versions of the weights that an asynchronous run makes of them."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import torch

from pipebench_torch.machine import Machine
from pipebench_torch.placing.layout import Layout
from pipebench_torch.placing.orders import Task
from pipebench_torch.running.exchange import Addition
from pipebench_torch.running.stage import StageRun

RATE = 2.0**-20
"""Of the gradient steps of an asynchronous run: so small that they do not make roundings grow, and so large that
gradients on weights of another age differ by a thousand times what roundings may.
"""


class Updates:
    """The sums and the weights of one process.

    Replicas that share each micro-batch end a mini-batch together: the sum is part of their last backward. Of
    replicas in turn each gives its part behind its own last backward and goes on. It waits for the sum when a
    forward needs the weights that are made of it. Gradients are of the loss of the whole mini-batch, so that sums
    are right however many micro-batches a replica has.

    groups: the process groups of stages with replicas.
    delay: mini-batch t runs on the weights after t - delay updates.
    """

    def __init__(
        self,
        layout: Layout,
        stages: Mapping[int, StageRun],
        tasks: Sequence[Task],
        groups: Mapping[int, Any],
        machine: Machine,
        delay: int,
    ) -> None:
        self._layout, self._stages, self._groups = layout, stages, groups
        self._machine, self._delay = machine, delay
        self._under_way: dict[int, deque[tuple[int, Addition]]] = defaultdict(deque)
        self._ending: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for stage in stages if layout.rounds > 1 else ():
            for round_, position in enumerate(self._last_backwards(stage, tasks)):
                self._ending[position].append((stage, round_))

    def _last_backwards(self, stage: int, tasks: Sequence[Task]) -> list[int]:
        """By mini-batch the task behind which this process adds nothing to its gradients; -1: before all tasks."""
        last = [-1] * self._layout.rounds
        for position, (other, micro_batch, kind) in enumerate(tasks):
            if other == stage and kind in "BW":
                last[self._layout.round_of(stage, micro_batch)] = position
        return list(accumulate(last, max))

    def begin(self) -> None:
        """Begin a run."""
        self._under_way.clear()
        self.after(-1)

    def after(self, position: int) -> None:
        """Give what a task made complete. position: of the task."""
        for stage, round_ in self._ending.get(position, ()):
            if self._layout.plan.stages[stage].turns == 1:
                self.add(stage, round_)
                self._step(stage, round_)
            else:
                self._under_way[stage].append((round_, self._addition(stage, round_)))

    def reach(self, stage: int, version: int) -> None:
        """Wait until there is a version of the weights of a stage."""
        while max(self._stages[stage].versions) < version:
            round_, addition = self._under_way[stage].popleft()
            addition.finish()
            self._step(stage, round_)

    def finish(self) -> None:
        """Wait for all sums."""
        for stage, additions in self._under_way.items():
            if additions:
                self.reach(stage, additions[-1][0] + 1)

    def add(self, stage: int, round_: int) -> None:
        """Add the gradients of all replicas."""
        if stage in self._groups:
            self._addition(stage, round_).finish()

    def _addition(self, stage: int, round_: int) -> Addition:
        run = self._stages[stage]
        run.gradients_of(round_)  # zeros where a replica has none
        return Addition(run.buckets[round_], self._groups[stage], self._machine)

    def _step(self, stage: int, round_: int) -> None:
        """Make version round + 1 of the weights from the newest one.

        Drops versions that no later mini-batch uses.
        """
        run = self._stages[stage]
        gradients, newest = run.gradients_of(round_), run.versions[round_]
        with torch.no_grad():
            run.versions[round_ + 1] = {
                name: (value - RATE * gradients[name]).requires_grad_() if name in gradients else value
                for name, value in newest.items()
            }
        for old in [v for v in run.versions if 0 < v <= round_ - self._delay]:
            del run.versions[old]
        run.forget(round_ - 1)
