"""All that can change the result of a trial, and the key that follows from it."""

from typing import Any

from msgspec.structs import replace

from pipebench.domain.problem import RegimeMode
from pipebench.domain.value import Value, digest


class ComponentInputs(Value, frozen=True, kw_only=True):
    """A component: its name, every option with its value (defaults included), and the digest of its code.

    source: of the code that it reaches by imports, comments, docstrings and formatting apart.
    """

    name: str
    options: dict[str, Any] = {}
    source: str


class TrialInputs(Value, frozen=True, kw_only=True):
    """What a trial depends on; two trials with equal inputs are one, whatever `host` they came from.

    regime: that the plan is scored in. planning: that the planner plans in, another one where its plan is adapted.
    scheduler None: the plan's own or the planner's default. called: slot/name to the digest of the code, of each
    component that takes part otherwise: declared by another one, named in an option, the default scheduler.
    model: costs.version.MODEL_VERSION; 0 in rows from before there was one. versions: of Python and of the
    packages that the components import. timeout_s in seconds, memory_bytes 0 for no limit. host: hash of the
    source of pipebench; for information, not in the key.
    """

    problem_id: str
    regime: RegimeMode
    planning: RegimeMode | None = None
    planner: ComponentInputs
    scheduler: ComponentInputs | None = None
    executors: tuple[ComponentInputs, ...] = ()
    called: dict[str, str] = {}
    seed: int = 0
    repeat: int = 1
    repetition: int = 0
    timeout_s: float
    memory_bytes: int = 0
    model: int = 0
    versions: dict[str, str] = {}
    host: str = ""


def trial_key(inputs: TrialInputs) -> str:
    """SHA-256 of the inputs, `host` apart, in canonical JSON (names sorted, equal numbers alike), in hex."""
    return digest(replace(inputs, host=""))
