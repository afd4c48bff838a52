"""All that can change the result of a trial, and the key that follows from it."""

from typing import Any

from pipebench.domain.problem import RegimeMode
from pipebench.domain.value import Value, digest


class ComponentInputs(Value, frozen=True, kw_only=True):
    """A component: its name, every option with its value (defaults included), and the hash of its source."""

    name: str
    options: dict[str, Any] = {}
    source: str


class TrialInputs(Value, frozen=True, kw_only=True):
    """What a trial depends on; two trials with equal inputs are one.

    scheduler None: the plan's own or the planner's default. called: hash of the source of each component that
    the planner may call by name, default schedulers included, as slot/name. host: hash of the code that searches,
    checks and scores. versions: packages that can change a result. timeout_s in seconds, memory_bytes 0 for no
    limit.
    """

    problem_id: str
    regime: RegimeMode
    planner: ComponentInputs
    scheduler: ComponentInputs | None = None
    executors: tuple[ComponentInputs, ...] = ()
    called: dict[str, str] = {}
    seed: int = 0
    repeat: int = 1
    repetition: int = 0
    timeout_s: float
    memory_bytes: int = 0
    host: str
    versions: dict[str, str] = {}


def trial_key(inputs: TrialInputs) -> str:
    """SHA-256 of the inputs in canonical JSON (names sorted, equal numbers written alike), in hex."""
    return digest(inputs)
