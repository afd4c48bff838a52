"""The judge: is a plan, schedule or trace valid? A verdict and a smallest witness, from code no planner owns."""

from pipebench.check.pins import check_pins
from pipebench.check.plan import check_plan
from pipebench.check.refusal import require_ordered, require_valid_plan
from pipebench.check.schedule import check_schedule
from pipebench.check.trace import check_run, check_trace

__all__ = [
    "check_pins",
    "check_plan",
    "check_run",
    "check_schedule",
    "check_trace",
    "require_ordered",
    "require_valid_plan",
]
