"""Schedules for tests of the simulator: the shipped schedulers called directly, and lanes written as text."""

from typing import Literal

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule, Lane
from pipebench.hooks.context import Context
from pipebench_schedules import single_stage
from pipebench_schedules.plugin import OneFOneBOptions


def gpipe_schedule(problem: Problem, plan: Plan) -> FiniteSchedule:
    return single_stage.schedule_gpipe(problem, plan, Context(options=None))


def one_f_one_b_schedule(problem: Problem, plan: Plan, warmup: Literal["+1", "+2"] = "+1") -> FiniteSchedule:
    return single_stage.schedule_1f1b(problem, plan, Context(options=OneFOneBOptions(warmup=warmup)))


def lanes(*texts: str) -> FiniteSchedule:
    """One lane for each text, on device 0, 1, …, with stage = device: "F0 F1 B0 B1"."""
    made = []
    for device, text in enumerate(texts):
        words = text.split()
        made.append(
            Lane(
                devices=(device,),
                stage=(device,) * len(words),
                micro_batch=tuple(int(word[1:]) for word in words),
                kinds="".join(word[0] for word in words),
            )
        )
    return FiniteSchedule(lanes=tuple(made))
