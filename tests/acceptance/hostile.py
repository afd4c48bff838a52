"""A distribution of planners that one would not invite."""

from pathlib import Path

from tests.hooks.distributions import install

NAMES = ("allocates", "exits", "grandchild", "hangs", "invalid", "nothing", "prints", "raises")

SOURCE = """
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Planner

PIPEBENCH_API = 1

@hookimpl
def pipebench_planners():
    return [
        Planner(name=name, summary="", load=f"{module}:{name}")
        for name in ("allocates", "exits", "grandchild", "hangs", "invalid", "nothing", "prints", "raises")
    ]

def allocates(problem, context):
    held = []
    while True:
        held.append(bytearray(10**7))

def exits(problem, context):
    import os
    os._exit(0)

def grandchild(problem, context):
    import subprocess, time
    subprocess.Popen(["setsid", "sleep", "4711"])
    subprocess.Popen(["sleep", "4711"])
    time.sleep(0.2)
    return None

def hangs(problem, context):
    import time
    time.sleep(1000)

def invalid(problem, context):
    from pipebench.domain.plan import Plan, Stage
    first = problem.profile.graph.operators[0].name
    return Plan(stages=(Stage(operators=(first,), devices=(0,), micro_batch=1),))

def nothing(problem, context):
    return None

def prints(problem, context):
    while True:
        print("look at me " * 1000)

def raises(problem, context):
    raise RuntimeError("a bug")
"""


def install_hostile(folder: Path) -> None:
    """Put the distribution into a folder for sys.path."""
    install(folder, "hostile-planners", SOURCE)
