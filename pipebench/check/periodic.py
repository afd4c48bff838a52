"""The rules of a periodic schedule, memory included."""

from pipebench.check.declared_flight import periodic_excess
from pipebench.check.periodic_buffers import overrun_buffer
from pipebench.check.periodic_dependencies import broken_dependency
from pipebench.check.periodic_memory import periodic_memory
from pipebench.check.periodic_operations import read_pattern
from pipebench.check.periodic_resources import busy_twice
from pipebench.check.precedence import waiting_stages
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.domain.verdict import Verdict, Witness, with_witness


def check_periodic(
    problem: Problem, model: CostModel, plan: Plan, schedule: PeriodicSchedule, *, strict_buffers: bool
) -> Verdict:
    """The verdict on a periodic schedule of a plan that `check_plan` found valid."""
    pattern = read_pattern(problem, model, plan, schedule)
    if isinstance(pattern, Witness):
        return Verdict(status="invalid", witness=pattern)
    edges = waiting_stages(model, plan)
    witness = broken_dependency(pattern, edges) or busy_twice(plan, pattern, problem.cluster.link_mode)
    if witness is None and strict_buffers:
        tensors = sorted({(m.source, m.target) for m in model.messages(plan)})
        witness = overrun_buffer(pattern, tensors)
    if witness is not None:
        return Verdict(status="invalid", witness=witness)
    return with_witness(periodic_memory(problem, model, plan, pattern), periodic_excess(plan, pattern))
