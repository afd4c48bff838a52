"""Which calls a check looks at: `plugin check --only` makes no others."""

from pipebench.hooks.descriptors import Planner
from pipebench.testing import cases
from pipebench.testing.planners.optimality import ASKED
from pipebench.testing.planners.questions import AGAIN, DEADLINES, EDGES, FIRST, SPARE
from pipebench.testing.targets import CheckTarget

NONE: frozenset[str] = frozenset()
"""Of a check that makes its own calls, or none."""
OWN = ("discovery", "metadata", "suffixes", "memo", "options", "cancel", "dead-worker")
CHAIN = ("chain", FIRST, AGAIN)
QUESTIONS: dict[str, tuple[str, ...]] = {
    **{f"validity-{name}": CHAIN if name == "chain" else (name,) for name in cases.PROBLEM_CASES},
    "infeasible": ("starved", *cases.PROBLEM_CASES),
    "memory-edge": ("chain", *EDGES),
    "pins": tuple(f"pin {pin}" for pin in cases.PINNED),
    "deadline": (*DEADLINES, SPARE),
    "optimality": ASKED,
}
"""Check of planners to what it asks about; others look at every answer."""
CALLS = {
    ("profilers", "profile"): "layers",
    ("profilers", "unknown-kind"): "unknown kind",
    ("formats", "sample"): "sample",
}


def call_needs(subject: CheckTarget, check: str) -> frozenset[str] | None:
    """The names of the calls that a check of the component looks at; None for all."""
    if check in OWN:
        return NONE
    if isinstance(subject.component, Planner):
        about = QUESTIONS.get(check)
        modes = subject.component.capabilities.regimes
        return None if about is None else frozenset(f"{each} ({mode})" for each in about for mode in modes)
    if subject.slot == "schedulers" and check.startswith("validity-"):
        return frozenset({check.removeprefix("validity-")})
    name = CALLS.get((subject.slot, check))
    return None if name is None else frozenset({name})
