"""The processes that schedulers run in: one for each plugin, and the order is the same as without them."""

import pytest

from pipebench.bench.cage.installed import installed_host
from pipebench.bench.ordering.choice import OrderedPlan, order_plan
from pipebench.bench.ordering.errand import play
from pipebench.bench.searches.isolation.child import Errand
from pipebench.bench.searches.isolation.client import (
    Isolation,
)
from pipebench.bench.searches.isolation.conversation import ChildExit
from pipebench.bench.services import HostServices
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import Schedule
from pipebench.domain.trace import Trace
from pipebench.hooks.descriptors import Planner
from pipebench.hooks.installed.catalogue import DescribedHost
from pipebench.hooks.manager import Host
from tests.builders import chain_problem, cluster, stages_plan

PROBLEM = chain_problem([10, 10], [20, 20], cluster(2, memory=1000), mode="sync", mini_batch=4)
PLAN = stages_plan([[0], [1]], micro_batch=1)


@pytest.fixture
def errands(monkeypatch: pytest.MonkeyPatch) -> list[Errand]:
    """What children were asked for."""
    found: list[Errand] = []
    run = Isolation.run

    def noted(server: Isolation, errand: Errand, *more: object) -> ChildExit:
        found.append(errand)
        return run(server, errand, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(Isolation, "run", noted)
    return found


@pytest.fixture(scope="module")
def installed() -> DescribedHost:
    return installed_host()


def ordered(host: Host) -> OrderedPlan:
    planner = Planner(name="mine", summary="", load="")
    found = order_plan(host, PROBLEM, planner, PlanResult(plan=PLAN), None, (), adapted=False, seed=0)
    assert isinstance(found, OrderedPlan)
    return found


def test_the_schedulers_of_one_plugin_share_a_process(installed: DescribedHost, errands: list[Errand]) -> None:
    first = ordered(installed)
    assert len(errands) <= 2  # the first time another one compiles the kernels
    errands.clear()
    assert ordered(installed) == first
    assert len(errands) == 1


def test_processes_change_no_order(installed: DescribedHost) -> None:
    here, there = ordered(Host()), ordered(installed)
    assert (here.scheduler, here.schedule, here.verdict) == (there.scheduler, there.schedule, there.verdict)


def test_an_order_of_a_toy_that_cannot_be_simulated_costs_nothing_else() -> None:
    class Failing(HostServices):
        def simulate(self, problem: Problem, plan: Plan, schedule: Schedule) -> Trace:
            del problem, schedule
            tried.append(plan)
            raise PipebenchError("not this one")

    tried: list[Plan] = []
    assert play(Failing(Host()), "sync", ("1f1b", "gpipe"), simulated=True) >= 0.0
    assert len(tried) == 2
