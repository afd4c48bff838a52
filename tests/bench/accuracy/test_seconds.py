"""The time of a run as a fit asks for it: that of the whole prediction, whatever the constants."""

import pytest
from msgspec.structs import replace

from pipebench.bench.accuracy.expression import ExpressedRun, express
from pipebench.bench.accuracy.measurement import FIXED_ORDERS, Predictor, plan_of
from pipebench.bench.services import HostServices
from pipebench.domain.tuning import CONSTANTS, Tuning
from pipebench.hooks.manager import Host
from tests.bench.accuracy.tables import run

SERVICES = HostServices(Host())
DEVICE, FRAMEWORK = "A100-SXM4-80GB", "megatron-deepspeed"
RUNS = {
    "1f1b": {},
    "interleaved": {"schedule": "interleaved-1f1b", "vpp": "2"},
    "zero-bubble": {"schedule": "zb-1p"},
    "in a V": {"schedule": "zb-v"},
    "one stage": {"pp": "1", "dp": "4", "gbs": "32"},
}


def at_ends(name: str) -> list[ExpressedRun]:
    """The run under the usual constants, and under each end of all ranges."""
    expressed = express(run(device=DEVICE, **RUNS[name]))
    ends = (
        {constant.name: (constant.low, constant.high)[end] for constant in CONSTANTS.values()} for end in (0, 1)
    )
    tunings = [Tuning(device=DEVICE, framework=FRAMEWORK, constants=constants) for constants in ends]
    return [expressed, *(replace(expressed, tuning=tuning) for tuning in tunings)]


@pytest.mark.parametrize("name", RUNS)
def test_it_is_the_predicted_time(name: str) -> None:
    predictor = Predictor(SERVICES)
    for each in at_ends(name):
        assert predictor.seconds(each) == Predictor(SERVICES).predict(each).simulated_s
        assert predictor.seconds(each) == predictor.predict(each).simulated_s


@pytest.mark.parametrize("name", ["1f1b", "interleaved", "one stage"])
def test_costs_do_not_change_an_order_that_is_kept(name: str) -> None:
    orders = set()
    for each in at_ends(name):
        assert each.scheduler in FIXED_ORDERS
        problem = Predictor(SERVICES).problem(each)
        orders.add(SERVICES.schedule(each.scheduler, problem, plan_of(problem, each)))
    assert len(orders) == 1
