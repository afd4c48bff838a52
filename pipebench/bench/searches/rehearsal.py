"""What every child does once in its life, done once before: what Python builds at the first time is there then.

This file is the planner of the rehearsal as well: one in a file, as users have them.
"""

import msgspec

from pipebench.bench.components import ready_planner
from pipebench.bench.searches.isolation.calls import filter_program
from pipebench.bench.searches.perform import perform
from pipebench.bench.searches.request import SearchRequest
from pipebench.bench.searches.toys import toys
from pipebench.bench.services import HostServices
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.hooks.context import Context
from pipebench.hooks.installed.catalogue import ChildHost
from pipebench.hooks.syntax import Reference


def rehearse() -> None:
    """Search a toy problem, and make the filters of system calls."""
    for apart in (True, False):
        filter_program(network=False, apart=apart)
    host = ChildHost({})
    planner = ready_planner(host, Reference(__file__))
    report = perform(HostServices(host), planner, None, SearchRequest(problem=toys("sync")[0]), quiet=True)
    msgspec.msgpack.encode(report)


def plan(problem: Problem, context: Context) -> Plan:
    """Everything on the first device."""
    context.count("rehearsals")
    operators = tuple(operator.name for operator in problem.profile.graph.operators)
    return Plan(stages=(Stage(operators=operators, devices=(0,), micro_batch=1),))
