"""The schedule of a measured run as a scheduler of the suite."""

from pipebench.bench.accuracy.assumptions import Choices, NotExpressed
from pipebench.bench.accuracy.run import Run
from pipebench.defaults import IN_A_V, INTERLEAVED, MEASURED_SCHEDULERS, ONE_F_ONE_B
from pipebench.domain.errors import nearest
from pipebench.domain.value import Value

STANDING_IN = ("zb-1p", "zb-2p")
MOST_TRIED = 8


class Order(Value, frozen=True, kw_only=True):
    """scheduler: by name. stages: of one pipeline. virtual: of them on each device."""

    scheduler: str
    stages: int
    virtual: int


def order_of(run: Run, pipeline: int, layers: int, choices: Choices) -> Order:
    """The order of a run. Raises NotExpressed for a schedule without a scheduler."""
    said = run.schedule.split()[0].lower() if run.schedule else ""
    if pipeline == 1:
        return Order(scheduler=ONE_F_ONE_B, stages=1, virtual=1)
    if not said:
        said = INTERLEAVED if run.vpp and run.vpp > 1 else choices.take("schedule", ONE_F_ONE_B)
    if said not in MEASURED_SCHEDULERS:
        raise NotExpressed(f"no scheduler for the schedule {said[:30]}", nearest(said, MEASURED_SCHEDULERS))
    virtual = run.vpp or 1
    if said == INTERLEAVED and run.vpp is None:
        even = [k for k in range(2, MOST_TRIED + 1) if layers % (pipeline * k) == 0]
        virtual = int(choices.take("vpp", even[0] if even else 1, [*even[1:], 1]))
    if said == INTERLEAVED and virtual == 1:
        said = ONE_F_ONE_B
    if said == IN_A_V:
        virtual = 2
    elif virtual > 1 and said != INTERLEAVED:
        raise NotExpressed(f"several stages a device under {said}", f"vpp is {virtual}; {INTERLEAVED} has them")
    if said in STANDING_IN:
        choices.take("scheduler", f"{MEASURED_SCHEDULERS[said]} in place of {said}")
    return Order(scheduler=MEASURED_SCHEDULERS[said], stages=pipeline * virtual, virtual=virtual)
