"""What a program that plans is told beside the problem: one environment variable for each thing."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from pipebench.domain.problem import Problem
from pipebench.domain.value import Value
from pipebench.hooks.context import Context

THREADS = 1
"""Search times are those of one thread."""
THREAD_LIMITS = (
    *(f"{library}_NUM_THREADS" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "BLIS")),
    "VECLIB_MAXIMUM_THREADS",
)
"""Variables with which libraries let themselves be limited."""


class ProgramOptions(Value, frozen=True, kw_only=True):
    """options: of a program, name to text as the user wrote them."""

    options: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable of a program.

    text: what it says, for the reference.
    value: None where there is nothing to say, and the variable is not set.
    """

    name: str
    text: str
    value: Callable[[Problem, Context], str | None]


VARIABLES: tuple[Variable, ...] = (
    Variable(
        "PIPEBENCH_OPTIONS",
        'The options as a JSON object, names to texts: `{"depth": "3"}` for `cmd:\'./p --fast\'[depth=3]`.',
        lambda _, context: _options(context),
    ),
    Variable(
        "PIPEBENCH_SEED",
        "A whole number, the seed of everything random.",
        lambda _, context: str(context.seed),
    ),
    Variable(
        "PIPEBENCH_DEADLINE_S",
        "Seconds that are left when the program starts, such as `9.875`. Not set where there is no limit.",
        lambda _, context: _seconds_left(context),
    ),
    Variable(
        "PIPEBENCH_DEVICES",
        "The number of devices of the cluster. Their ids are 0, 1, …",
        lambda problem, _: str(problem.cluster.size),
    ),
    Variable(
        "PIPEBENCH_THREADS",
        f"The number of threads to use. {', '.join(f'`{name}`' for name in THREAD_LIMITS)} say the same.",
        lambda *_: str(THREADS),
    ),
    Variable(
        "PIPEBENCH_SCHEDULER",
        "The scheduler that will order the plan, where the user names one; else empty.",
        lambda _, context: context.scheduler,
    ),
    Variable(
        "PIPEBENCH_PLACEMENTS",
        "A JSON list of the placements that this scheduler takes; empty where the user names none.",
        lambda _, context: msgspec.json.encode(context.placements).decode(),
    ),
)


def program_environment(problem: Problem, context: Context) -> dict[str, str]:
    """The environment of a program that starts now: that of this process, and what the program is told."""
    environment = {name: value for name, value in os.environ.items() if name not in {v.name for v in VARIABLES}}
    environment |= dict.fromkeys(THREAD_LIMITS, str(THREADS))
    told = {variable.name: variable.value(problem, context) for variable in VARIABLES}
    return environment | {name: value for name, value in told.items() if value is not None}


def seconds_left(context: Context) -> float | None:
    """Until the deadline, not below zero; None where there is none."""
    return None if context.deadline_s is None else max(0.0, context.deadline_s - time.monotonic())


def _seconds_left(context: Context) -> str | None:
    left = seconds_left(context)
    return None if left is None else f"{left:.3f}"


def _options(context: Context) -> str:
    options = context.options.options if isinstance(context.options, ProgramOptions) else {}
    return msgspec.json.encode(options, order="sorted").decode()
