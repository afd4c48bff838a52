"""What a result depends on beside the code that is tracked: a change of it starts a new segment, not an alarm."""

import hashlib
import inspect
from collections.abc import Mapping
from functools import cache

from pipebench.bench.environment import PACKAGES
from pipebench.bench.searches import calibration
from pipebench.bench.trials.trial import Trial
from pipebench.domain.row import Row

PROBLEM = "problem"


def fingerprint(trial: Trial, row: Row) -> dict[str, str]:
    """Problem, declared versions of planner, pipebench, Python and packages, architecture, seed, limits.

    The source of the planner is not part of it: that it changed is what tracking is about.
    """
    environment = row.environment
    found = {
        PROBLEM: row.problem_id,
        "planner": f"{row.distribution} {row.version}".strip(),
        "executors": ",".join(trial.executors),
        "python": ".".join(environment.get("python", "").split(".")[:2]),
        "system": f"{environment.get('system', '')} {environment.get('machine', '')}",
        "seed": str(trial.seed),
        "timeout_s": f"{trial.timeout_s:g}",
    }
    return found | {name: environment.get(name, "") for name in PACKAGES}


@cache
def calibration_code() -> str:
    """Hash of the calibrations' code: the unit of paired ratios."""
    return hashlib.sha256(inspect.getsource(calibration).encode()).hexdigest()[:16]


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """What differs, one line each; problems are hashes, which say nothing to people."""
    return [
        "another problem" if name == PROBLEM else f"{name} {before.get(name) or '-'} -> {after.get(name) or '-'}"
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]
