"""The schedules of an artefact's cells that are to be drawn, simulated again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipebench.bench.reproduction.reproduce import ReproductionPlan
from pipebench.bench.services import HostServices
from pipebench.bench.store import Store
from pipebench.bench.sweeps.run_plan import FinishedTrial
from pipebench.domain.trace import Trace
from pipebench.hooks.manager import Host


@dataclass(frozen=True, slots=True)
class Timeline:
    """What one cell's schedule is called, and when its tasks run."""

    title: str
    trace: Trace


def timelines(
    host: Host, work: ReproductionPlan, finished: Sequence[FinishedTrial], store: Store | None
) -> Iterator[Timeline]:
    """One for each cell that asks for it and has a schedule, in the order of the cells.

    Plans and schedules of rows that the store held are read from it. Raises PipebenchError if they are not there.
    """
    services = HostServices(host)
    for each in sorted(finished, key=lambda each: work.places[each.position]):
        cell, outcome = work.cells[work.places[each.position]], each.outcome
        row, plan, schedule = outcome.row, outcome.plan, outcome.schedule
        if not cell.timeline or row.status != "ok":
            continue
        if store is not None and (plan is None or schedule is None):
            assert row.plan_id is not None
            assert row.schedule_id is not None
            plan, schedule = store.plan(row.plan_id), store.schedule(row.schedule_id)
        if plan is not None and schedule is not None:
            yield Timeline(cell.timeline, services.simulate(outcome.problem, plan, schedule))
