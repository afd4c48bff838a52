"""Which part of a simulated step would explain why the measured one takes another time.

Of each part the factor by which it alone would have to be scaled for the simulation to take the measured time: the
step is simulated again with the part scaled, and the factor found by bisection over whole millionths. The factor
that is said changes the part as little as possible.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import Schedule
from pipebench.simulation.step_parts import MILLION, PARTS, DeviceParts, Part, PartedStep

LARGEST_FACTOR = 10
"""A part that would have to be more than ten times as long, or shorter than nothing, explains nothing alone."""


@dataclass(frozen=True, slots=True)
class PartAlone:
    """One part of the step, on the device that is busy longest.

    simulated_ns: of the part. factor: by which it alone would have to be scaled; None: it cannot explain the
    difference alone. reached_ns: the step with that factor; where there is none, with the factor of the range that
    comes nearest.
    """

    part: Part
    simulated_ns: int
    factor: float | None
    reached_ns: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """simulated_ns, measured_ns: the step. devices: those that are busy longest, whose parts add up to it.

    parts: those that explain the difference alone, the least change first; then those that cannot.
    by_device: the parts of all devices. given: factors that were taken as measured before anything was explained.
    collectives_told: whether the profile tells collectives inside stages apart; else they are inside `kernels`.
    """

    simulated_ns: int
    measured_ns: int
    devices: tuple[int, ...]
    parts: tuple[PartAlone, ...]
    by_device: tuple[DeviceParts, ...]
    given: Mapping[Part, float]
    collectives_told: bool


def explain_step(
    problem: Problem,
    plan: Plan,
    schedule: Schedule,
    measured_s: float,
    given: Mapping[Part, int] | None = None,
) -> Explanation:
    """The explanation of a measured time of one mini-batch.

    given: parts whose measured time is known, by their factor in millionths: they are scaled before, and explain
    no more. Raises UnsupportedProblem for a plan without a flush.
    """
    step = PartedStep(problem, plan, schedule, given or {})
    measured_ns = round(measured_s * NS_PER_S)
    critical = step.critical
    parts = [_alone(step, critical, part, measured_ns) for part in PARTS if part not in (given or {})]
    return Explanation(
        simulated_ns=step.total_ns,
        measured_ns=measured_ns,
        devices=critical.devices,
        parts=tuple(sorted(parts, key=_change)),
        by_device=step.devices,
        given={part: factor / MILLION for part, factor in (given or {}).items()},
        collectives_told=_collectives_told(problem, plan),
    )


def _change(each: PartAlone) -> tuple[float, int]:
    """How much the part would change: by the ratio, whichever way."""
    if each.factor is None:
        return float("inf"), PARTS.index(each.part)
    return (max(each.factor, 1 / each.factor) if each.factor else float(MILLION)), PARTS.index(each.part)


def _alone(step: PartedStep, critical: DeviceParts, part: Part, measured_ns: int) -> PartAlone:
    own_ns = critical.ns[part]
    if measured_ns == step.total_ns:
        return PartAlone(part, own_ns, 1.0, measured_ns)
    if part == "bubble":
        return _bubble_alone(step, own_ns, measured_ns)
    longer = measured_ns > step.total_ns
    near, far = MILLION, LARGEST_FACTOR * MILLION if longer else 0
    reached_ns = step.scaled_ns({part: far})
    if (reached_ns < measured_ns) if longer else (reached_ns > measured_ns):
        return PartAlone(part, own_ns, None, reached_ns)
    while abs(far - near) > 1:
        middle = (near + far) // 2
        at_ns = step.scaled_ns({part: middle})
        if (at_ns >= measured_ns) if longer else (at_ns <= measured_ns):
            far, reached_ns = middle, at_ns
        else:
            near = middle
    return PartAlone(part, own_ns, far / MILLION, reached_ns)


def _bubble_alone(step: PartedStep, own_ns: int, measured_ns: int) -> PartAlone:
    """Idle time is no input of the simulation: the idle time of the device itself is scaled."""
    wanted_ns = own_ns + measured_ns - step.total_ns
    if 0 <= wanted_ns <= LARGEST_FACTOR * own_ns and own_ns:
        return PartAlone("bubble", own_ns, wanted_ns / own_ns, measured_ns)
    nearest_ns = LARGEST_FACTOR * own_ns if wanted_ns > 0 else 0
    return PartAlone("bubble", own_ns, None, step.total_ns - own_ns + nearest_ns)


def _collectives_told(problem: Problem, plan: Plan) -> bool:
    model = CostModel(problem)
    split = (stage for stage in plan.stages if stage.tensor_parallel > 1)
    return all(any(model.collective_ns(stage, plan)) for stage in split)
