"""Planners in files, run on a problem of two operators as the suite runs strangers."""

from pathlib import Path
from typing import Any

from pipebench.bench.components import ready_planner
from pipebench.bench.trials.trial import Outcome, Trial, run_trial
from pipebench.domain.problem import Pins
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference
from tests.bench.ready import workload
from tests.builders import chain_problem, cluster

HOST = Host()
PROBLEM = chain_problem(
    [10, 10],
    [20, 20],
    cluster(2, memory=1000),
    activations=[5, 6, 0],
    weights=[7, 8],
    mode="sync",
    mini_batch=4,
    pins=Pins(micro_batch=1),
)
HONEST = """
from pipebench.domain.plan import Plan, Stage

def plan(problem, context):
    stage = [Stage(operators=(f"op{i}",), devices=(i,), micro_batch=1) for i in range(2)]
    context.count("stages", 2)
    return Plan(stages=tuple(stage))
"""


def run(folder: Path, source: str, **trial: Any) -> Outcome:
    """The outcome of the planner with that source."""
    script = folder / "stranger.py"
    script.write_text(source)
    ready = ready_planner(HOST, parse_reference(str(script)))
    return run_trial(HOST, Trial(workload=workload(PROBLEM), regime="sync", planner=ready, **trial))
