"""Algorithm 2: the number of nodes, of stages and of micro-batches (RaNNC, section III-C)."""

from pipebench.domain.problem import Problem
from pipebench.hooks.context import Context
from pipebench_rannc.candidates import Candidate, candidate
from pipebench_rannc.differences import Differences
from pipebench_rannc.runs import Runs
from pipebench_rannc.space import Flow, Shape, flows, replica_choices, shapes, stage_counts
from pipebench_rannc.stage_dp import Solved, all_labels, one_label
from pipebench_rannc.tables import Tabled, printed


def printed_search(
    problem: Problem, runs: Runs, limit_bytes: int, chosen: Differences, context: Context
) -> Candidate | None:
    """The best number of micro-batches at the first number of stages that any plan has; None where none has.

    Raises DeadlineReached.
    """
    tried = 0
    for shape in shapes(problem, chosen.nodes == "doubling"):
        first = node_first(shape) if chosen.stages == "printed" else tried + 1
        ready: dict[Flow, Tabled] = {}
        for stages in stage_counts(problem, shape, runs.size):
            if stages < first and problem.pins.pipeline is None:
                continue
            found = []
            for flow in flows(problem, shape, True, chosen.micro_batches):
                context.check_deadline()
                if flow not in ready:
                    ready[flow] = _tabled(problem, runs, flow, limit_bytes, chosen)
                solved = _solve(ready[flow], stages, shape.devices, chosen)
                context.count("stage_searches")
                context.count("transitions", solved.transitions)
                if stages in solved.cuts:
                    both = chosen.communication == "both"
                    found.append(candidate(runs, flow, solved.cuts[stages], ready[flow], False, both))
            if found:
                steps = chosen.choice == "steps"
                return min(found, key=lambda each: each.steps_ns if steps else each.bottleneck_ns)
        tried = max(tried, min(shape.devices, runs.size))
    return None


def node_first(shape: Shape) -> int:
    """D_node (n - 1) + 1, from where Algorithm 2 counts stages."""
    return shape.devices // shape.nodes * (shape.nodes - 1) + 1


def _tabled(problem: Problem, runs: Runs, flow: Flow, limit_bytes: int, chosen: Differences) -> Tabled:
    pinned = problem.pins.recompute
    recompute = flow.micro_batches > 1 if pinned is None else pinned == "stage"
    counts = replica_choices(problem, flow, chosen.replicas == "powers")
    return printed(runs, flow, counts, limit_bytes, chosen, recompute)


def _solve(tabled: Tabled, stages: int, devices: int, chosen: Differences) -> Solved:
    if chosen.labels == "all":
        return all_labels(tabled.times, stages, devices)
    return one_label(tabled.times, stages, devices, chosen.prune)
