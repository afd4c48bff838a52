"""How sure a prediction is: 90 % intervals from what published runs took that no constant was fitted to.

A prediction with a framework's step carries one. The residuals are of published iterations: measured over
predicted. Those of a model's shape were made with constants that were fitted without that shape. A group has at
least 30 of them; what has fewer takes the widest of all groups. How they were made: docs/explanation/accuracy.md.
"""

from msgspec import UNSET

from pipebench.costs.shapes.transformer import LAYER
from pipebench.domain.framework import Spread
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.value import Value

FITTED = "megatron-deepspeed"
"""The framework whose runs left out one shape after the other."""
JUDGED = "megatron-v2"
"""The framework to whose runs no constant was fitted; they were in view while the model was made."""
NODE = 8
"""Devices of a node, in the published runs."""


class Residuals(Value, frozen=True, kw_only=True):
    """The quantiles of measured over predicted seconds in a group of runs.

    low, high: at 5 and at 95 per cent. count: of runs. what: which.
    """

    low: float
    high: float
    count: int
    what: str


ONE_NODE_WHOLE = Residuals(
    low=0.919, high=1.125, count=240, what="Megatron-DeepSpeed on one node of A100, no tensor parallelism"
)
ONE_NODE_SPLIT = Residuals(
    low=0.816, high=1.154, count=300, what="Megatron-DeepSpeed on one node of A100, tensor parallelism"
)
NODES = Residuals(low=0.868, high=1.452, count=73, what="Megatron-DeepSpeed on 64 and 512 A100")
JUDGED_RUNS = Residuals(low=0.924, high=1.056, count=35, what="Megatron-LM of 2021 to 2023 on 8 to 3072 A100")
EXPERTS = Residuals(
    low=0.642,
    high=1.889,
    count=56,
    what="Megatron-LM whose ranks share out experts, on 8 to 256 H100, B200, B300, GB200 and GB300",
)
POOLED = Residuals(
    low=0.816,
    high=1.452,
    count=686,
    what="all published runs but those of experts; the widest of their groups, for what has too few",
)


class Interval(Value, frozen=True, kw_only=True):
    """low_s, high_s: where nine of ten measured runs like this one lie. residuals: the group that says so."""

    low_s: float
    high_s: float
    residuals: Residuals


def interval_of(problem: Problem, plan: Plan, simulated_s: float) -> Interval | None:
    """The interval of the predicted time of a plan; None where no framework's step is priced, where its constants
    were fitted to too few runs to say, and where no run was like it: all were of language models, with a flush,
    without groups of ranks that share out a copy each; those whose ranks share out sequences had short ones.

    Published runs say nothing of constants that were fitted to others: these have the spread of their own runs.
    """
    step = problem.regime.step
    regime = problem.regime
    if step is None or step.calibrated is None or regime.mode == "async":
        return None
    replicas = max(stage.data_parallel for stage in plan.stages) * plan.all_pipelines
    if regime.context_ranks > 1 or regime.shards(replicas) < replicas:
        return None
    if regime.expert_ranks > 1 and step.calibrated is not UNSET:
        return None
    if all(operator.kind != LAYER for operator in problem.profile.graph.operators):
        return None
    if regime.expert_ranks > 1:
        found = EXPERTS
    elif step.calibrated is UNSET:
        widest = max(stage.tensor_parallel for stage in plan.stages)
        found = residuals_of(step.framework, problem.cluster.devices[0], plan.devices_used, widest)
    else:
        found = calibrated_residuals(step.calibrated)
    return Interval(low_s=simulated_s * found.low, high_s=simulated_s * found.high, residuals=found)


def calibrated_residuals(spread: Spread) -> Residuals:
    """The residuals of a calibration's own runs, by fits that did not see them."""
    missing = "shape" if spread.left_out == "shapes" else "run"
    what = f"runs of the calibration, each by a fit without its {missing}"
    return Residuals(low=spread.low, high=spread.high, count=spread.count, what=what.replace("its run", "it"))


def residuals_of(framework: str, device: str, devices: int, tensor_parallel: int) -> Residuals:
    """The group of runs that a prediction belongs to. tensor_parallel: its largest degree."""
    if not device.upper().startswith("A100") or framework not in (FITTED, JUDGED):
        return POOLED
    if framework == JUDGED:
        return JUDGED_RUNS
    if devices > NODE:
        return NODES
    return ONE_NODE_WHOLE if tensor_parallel == 1 else ONE_NODE_SPLIT
