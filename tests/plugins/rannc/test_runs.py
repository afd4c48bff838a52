"""Tables of all runs of blocks equal the suite's cost model, run by run."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.recomputation import Recompute
from pipebench_rannc.blocks import Recipe
from pipebench_rannc.runs import BlockRuns
from tests.nightly import examples
from tests.plugins.rannc.made import blocks_of
from tests.plugins.rannc.strategies import problems


@given(problem=problems(), micro_batch=st.sampled_from([2, 4, 8]), replicas=st.integers(1, 2), again=st.booleans())
@settings(max_examples=examples(150), deadline=None)
def test_every_run_costs_what_the_suite_says(
    problem: Problem, micro_batch: int, replicas: int, again: bool
) -> None:
    """Each run as the middle stage of a plan: what is before it, it, what is behind it."""
    blocks = blocks_of(problem, Recipe(blocks=4, limit_bytes=2**60))
    model = CostModel(problem)
    runs = BlockRuns(model, blocks)
    samples = -(-micro_batch // replicas)
    forward, backward = runs.times(samples)
    recompute: Recompute = "stage" if again else "none"
    memory = runs.memory(samples, replicas, recompute)
    for first in range(len(blocks)):
        for end in range(first + 1, len(blocks) + 1):
            parts = [(a, b) for a, b in ((0, first), (first, end), (end, len(blocks))) if a < b]
            plan = Plan(
                stages=tuple(
                    Stage(
                        operators=blocks.operators(a, b),
                        devices=tuple(range(at * replicas, (at + 1) * replicas)),
                        data_parallel=replicas,
                        micro_batch=micro_batch,
                        recompute=recompute,
                    )
                    for at, (a, b) in enumerate(parts)
                )
            )
            at = parts.index((first, end))
            times = model.stage_times(plan.stages[at], plan)
            own = int(forward[first, end])
            assert own == times.forward
            assert int(backward[first, end]) + (own if again else 0) == times.backward
            assert int(runs.weights[first, end]) == model.parameter_bytes(plan.stages[at])
            edges = model.messages(plan)
            suite = model.stage_memory(plan, at, edges)
            for live in (1, 3):
                assert int(memory.peak(live)[first, end]) == suite.peak(live)
            level = problem.cluster.levels[0]
            there, back = runs.messages(micro_batch, replicas, level, False)
            sent = {m.tensor: m for m in edges if m.source == at}
            assert int(there[first, end]) == sum(model.message_ns(plan, m) for m in sent.values())
            assert int(back[first, end]) == sum(model.message_ns(plan, m, True) for m in sent.values())
            received = {m.tensor: m for m in edges if m.target == at}
            both, _ = runs.messages(micro_batch, replicas, level, True)
            came = sum(model.message_ns(plan, m) for m in received.values())
            assert int(both[first, end]) == int(there[first, end]) + came
