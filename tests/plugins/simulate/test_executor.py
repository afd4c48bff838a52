"""The executor `simulate` returns the simulator's trace and counts its work."""

from importlib import import_module

from pipebench.hooks.context import Context
from pipebench.simulation.simulate import simulate
from pipebench_simulate.plugin import pipebench_executors
from tests.builders import chain_problem, cluster, stages_plan
from tests.simulation.schedules import gpipe_schedule


def test_the_trace_of_the_simulator() -> None:
    (descriptor,) = pipebench_executors()
    module, _, attribute = descriptor.load.partition(":")
    execute = getattr(import_module(module), attribute)
    problem = chain_problem([1, 1], [2, 2], cluster(2), activations=[0, 1, 0], mode="sync", mini_batch=4)
    plan = stages_plan([[0], [1]])
    schedule = gpipe_schedule(problem, plan)
    context = Context(options=None)
    assert execute(problem, plan, schedule, context) == simulate(problem, plan, schedule)
    assert context.counters == {"tasks": 16, "transfers": 8}
