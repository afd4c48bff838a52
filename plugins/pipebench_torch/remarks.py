"""What is said beside a measured trace: are gradients right, was the prediction for this device."""

from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import Problem
from pipebench.hooks.context import Context
from pipebench_torch.placing.layout import Layout
from pipebench_torch.processes.job import Difference

ROUNDINGS = 1000
"""Most roundings by which a gradient may differ: 2e-13 in float64."""


def judge_gradients(difference: Difference | None, tolerance: float, context: Context) -> None:
    """Sums over micro-batches and replicas are rounded in another order than those of a single process: some
    roundings of the number format are no difference.
    """
    if difference is None:
        return
    allowed = tolerance or ROUNDINGS * difference.rounding
    if not difference.worst <= allowed:
        raise PipebenchError(
            f"gradients differ from those of {difference.kind}: by {difference.worst:.2g} of the largest one in "
            f"{difference.name!r}, {allowed:.2g} is allowed in {difference.numbers}"
        )
    how = (
        "exactly"
        if difference.exact == difference.parameters
        else f"{difference.exact} of {difference.parameters} exactly, the rest to {difference.worst:.1g}"
    )
    context.note(f"gradients equal those of {difference.kind}: {how}, in {difference.numbers}")


def note_other_device(problem: Problem, layout: Layout, device: str, name: str, context: Context) -> None:
    """Say so when the costs that were simulated are not those of what ran: the error then compares two devices."""
    types = {problem.cluster.type_of(each).name for each in layout.devices}
    origin = problem.profile.provenance
    measured = origin.profiler.startswith("torch")
    if types <= {device, name} and (not measured or origin.device == name):
        return
    of = origin.device if measured and types <= {device, name} else ", ".join(sorted(types))
    context.note(
        f"the profile is of {of} and this ran on {name}: the error compares two devices; plan with a profile of "
        f"this one: pipebench profile MODEL --profiler torch --device {device} -o FILE"
    )
