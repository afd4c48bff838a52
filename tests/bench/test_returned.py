"""What plugins return has the exact types of the domain, or is an error that names plugin and path."""

from typing import Any

import numpy as np
import pytest

from pipebench.bench.plugin_results import (
    MOST_LETTERS,
    MOST_NOTICES,
    call_plugin,
    exact_counters,
    exact_graph,
    exact_profile,
    exact_result,
    exact_schedule,
    exact_trace,
    few_notices,
)
from pipebench.bench.trials.trial import Outcome, Trial, run_trial
from pipebench.domain.errors import InfeasibleProblem, PipebenchError
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import FiniteSchedule, Lane, PeriodicSchedule
from pipebench.domain.trace import Trace
from pipebench.domain.value import digest
from pipebench.hooks.manager import Host
from tests.bench.ready import planner, workload
from tests.builders import chain_problem, cluster, stages_plan

HOST = Host()
PROBLEM = chain_problem([10, 10], [20, 20], cluster(2, memory=1000), weights=[7, 8], mode="sync", mini_batch=4)
GOOD = stages_plan([[0], [1]])


def loose(**fields: Any) -> Any:
    """A plan of two stages, its types as nobody checks them."""
    given = {"devices": [0], "micro_batch": 1, **fields}
    return Plan(stages=[Stage(**{"operators": ["op0"], **given}), GOOD.stages[1]])  # type: ignore[arg-type]


def trial(plan: Any) -> Outcome:
    made = planner(lambda problem, context: plan)
    return run_trial(HOST, Trial(workload=workload(PROBLEM), regime="sync", planner=made))


@pytest.mark.parametrize(
    "plan",
    [
        loose(),
        loose(devices=np.array([0]), micro_batch=np.int64(1)),
        loose(operators=(np.str_("op0"),), k=np.int32(1)),
        PlanResult(plan=loose(), claimed_s=np.float64(1.0), lower_bound_s=np.float32(2**-30)),  # type: ignore[arg-type]
    ],
)
def test_lists_and_numpy_numbers_become_plain(plan: Any) -> None:
    result = exact_result("mine", plan)
    assert result.plan == GOOD
    assert digest(result.plan) == digest(GOOD)
    first = result.plan.stages[0]
    assert type(result.plan.stages) is type(first.operators) is type(first.devices) is tuple
    assert {type(first.devices[0]), type(first.micro_batch), type(first.k)} == {int}
    assert {type(result.claimed_s), type(result.lower_bound_s)} <= {float, type(None)}
    assert trial(plan).row.status == "ok"


@pytest.mark.parametrize(
    ("plan", "path"),
    [
        (loose(micro_batch=2.5), "stages[0].micro_batch: Expected `int`, got `float`"),
        (loose(micro_batch=True), "stages[0].micro_batch: Expected `int`, got `bool`"),
        (loose(operators="op0"), "stages[0].operators: Expected `array`, got `str`"),
        (loose(devices=[0.0]), "stages[0].devices[0]: Expected `int`, got `float`"),
        (loose(operators=[object()]), "holds a value of type object"),
        (loose(recompute="some"), "stages[0].recompute: Invalid enum value 'some'"),
        (loose(k=np.float64(1.5)), "stages[0].k: Expected `int`, got `float`"),
    ],
)
def test_a_plan_of_wrong_types_is_a_crash_of_its_planner(plan: Any, path: str) -> None:
    row = trial(plan).row
    assert row.status == "crashed"
    assert "planner 'mine' returned" in row.reason
    assert path in row.reason
    assert "\n" not in row.reason


def test_schedules_of_lists_become_plain_and_wrong_ones_are_named() -> None:
    def lane(**fields: Any) -> Any:
        return Lane(**{"devices": [0], "stage": [0, 0], "micro_batch": [0, 0], "kinds": "FB", **fields})

    plain = FiniteSchedule(lanes=(Lane(devices=(0,), stage=(0, 0), micro_batch=(0, 0), kinds="FB"),))
    assert exact_schedule("s", FiniteSchedule(lanes=(lane(stage=np.zeros(2, int)),))) == plain
    with pytest.raises(PipebenchError, match=r"scheduler 's' returned .* at lanes\[0\]\.stage\[1\]"):
        exact_schedule("s", FiniteSchedule(lanes=(lane(stage=[0, 0.5]),)))
    half: Any = 2.5
    periodic = PeriodicSchedule(period_ns=half, stage=(), kinds="", start_ns=(), shift=())
    with pytest.raises(PipebenchError, match=r"scheduler 's' returned .* at period_ns"):
        exact_schedule("s", periodic)


def test_traces_graphs_and_profiles_are_held_to_their_types() -> None:
    wrong: Any = np.array([1, 5])
    trace = Trace(origin="measured", lanes=((0,),), lane=(0, 0), stage=(0, 0), micro_batch=(0, 0), kinds="FB",
                  start_ns=(0, 1), end_ns=wrong, total_ns=5)  # fmt: skip
    assert exact_trace("e", trace).end_ns == (1, 5)
    for exact, value in ((exact_graph, PROBLEM.profile.graph), (exact_profile, PROBLEM.profile)):
        assert exact("m", value) == value
        with pytest.raises(PipebenchError, match="returned dict"):
            exact("m", {})


def test_counters_are_plain_ints() -> None:
    assert exact_counters("mine", {"states": np.int64(3)}) == {"states": 3}
    with pytest.raises(PipebenchError, match="planner 'mine' returned counters"):
        exact_counters("mine", {"states": 0.5})
    assert exact_counters("mine", {"states": 2**63 - 1}) == {"states": 2**63 - 1}
    with pytest.raises(PipebenchError, match="a counter that is too large: states is 9223372036854775808"):
        exact_counters("mine", {"states": 2**63})


def test_notices_are_few_and_short() -> None:
    assert few_notices(["one\n two", "half \ud800"]) == ("one two", "half ?")
    many = few_notices(map(str, range(250_000)))
    assert (many[:2], many[-1]) == (("0", "1"), f"and {250_000 - MOST_NOTICES:,} notices more, which are left out")
    assert len(many) == MOST_NOTICES + 1
    assert few_notices(["x" * 10**7]) == ("x" * MOST_LETTERS + "…",)


def test_what_no_row_can_hold_is_said_in_the_row() -> None:
    """Half a character passes every type, and no message carries it."""
    lone = loose(operators=("\ud800",))
    found = trial(lone)
    assert found.row.status in ("crashed", "invalid_plan")
    assert "\\ud800" in found.row.reason


def raising(error: BaseException) -> Any:
    def work() -> Any:
        print("not on our stdout")
        raise error

    return work


@pytest.mark.parametrize("error", [ValueError("oops"), SystemExit("oops"), GeneratorExit("oops")])
def test_whatever_a_plugin_raises_is_one_error(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    where = r"\(test_returned\.py, line \d+\)"
    with pytest.raises(PipebenchError, match=f"^model 'm' failed: {type(error).__name__}: oops {where}$"):
        call_plugin("model 'm'", raising(error))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("error", [InfeasibleProblem("no"), MemoryError(), KeyboardInterrupt()])
def test_what_has_a_meaning_of_its_own_passes(error: BaseException) -> None:
    with pytest.raises(type(error)):
        call_plugin("model 'm'", raising(error))
