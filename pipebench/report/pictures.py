"""The pictures of what a file holds, simulated anew where that takes a simulation, and timelines to files."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipebench.bench.cage.installed import installed_host
from pipebench.bench.services import HostServices
from pipebench.check import require_ordered, require_valid_plan
from pipebench.documents.document import PlannedProblem
from pipebench.domain.errors import PipebenchError
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.domain.verdict import Verdict
from pipebench.formats.files import write_file
from pipebench.report.chart.plots import profile_svg, quality_svg
from pipebench.report.chart.stage_graph import stage_graph_svg
from pipebench.report.gantt.chrome import chrome_trace
from pipebench.report.gantt.gantt import Gantt, gantt
from pipebench.report.gantt.svg import gantt_svg
from pipebench.report.pattern import pattern_of, pattern_svg


def write_gantts(path: Path, gantts: Sequence[Gantt], title: str) -> None:
    """An .svg with all of them, or a .json of Chrome trace events of one.

    Raises PipebenchError for any other ending, several in one .json, or a file that cannot be written.
    """
    if path.suffix == ".svg":
        write_file(path, gantt_svg(gantts, title).encode())
    elif path.suffix != ".json":
        raise PipebenchError(f"cannot draw to {str(path)!r}", "end it in .svg or .json (Chrome trace)")
    elif len(gantts) != 1:
        raise PipebenchError(f"a Chrome trace holds one timeline, not {len(gantts)}", "draw them one by one")
    else:
        write_file(path, chrome_trace(gantts[0]).encode())


def write_picture(path: Path, kind: str, value: Any) -> None:
    """The timeline of a plan (one period of a periodic one), bars of a profile, or quality of rows.

    Raises PipebenchError for a file of another kind, a plan without a schedule, or an ending that is not known.
    """
    if kind == "plan" and not (isinstance(value.schedule, PeriodicSchedule) and path.suffix == ".svg"):
        write_gantts(path, [plan_gantt(value, HostServices(installed_host()))], title_of(value))
        return
    _only_svg(path)
    if kind == "plan":
        require_ordered(value.problem, value.plan, value.schedule)
        pattern = pattern_of(value.problem, value.plan, value.schedule)
        write_file(path, pattern_svg(pattern, title_of(value)).encode())
    elif kind == "profile":
        write_file(path, profile_svg(value).encode())
    elif kind == "rows":
        write_file(path, quality_svg(value.rows, "quality against search time").encode())
    else:
        raise PipebenchError(f"there is no picture of a {kind}", "give a plan, a profile, rows or a store")


def write_graph(path: Path, kind: str, value: Any) -> None:
    """The stages of a plan as a graph. Raises PipebenchError for another kind of file, or an invalid plan."""
    from pipebench.bench.score import judge

    _only_svg(path)
    if kind != "plan":
        raise PipebenchError(f"a {kind} has no stages", "give a plan")
    require_valid_plan(value.problem, value.plan)
    verdict = Verdict(status="valid")
    if value.schedule is not None:
        verdict = judge(value.problem, value.plan, value.schedule)
    write_file(path, stage_graph_svg(value.problem, value.plan, verdict, title_of(value)).encode())


def title_of(planned: PlannedProblem) -> str:
    """Who planned what on which cluster."""
    problem = planned.problem
    who = f"{planned.planner or 'a plan'}{f' x {planned.scheduler}' if planned.scheduler else ''}"
    where = f"{problem.cluster.accelerators} x {problem.cluster.name}"
    return f"{who}: {problem.profile.name} on {where}, mini-batch {problem.mini_batch}, {problem.regime.mode}"


def plan_gantt(planned: PlannedProblem, services: HostServices) -> Gantt:
    """The simulated timeline with memory.

    Raises PipebenchError for a plan without a schedule, one that is not valid, or one that cannot be simulated.
    """
    problem, plan, schedule = planned.problem, planned.plan, planned.schedule
    if schedule is None:
        raise PipebenchError("the plan has no schedule to draw", "plan it with `pipebench plan … -o`")
    require_ordered(problem, plan, schedule)
    capacity = [problem.cluster.type_of(device).memory_bytes for device in range(problem.cluster.size)]
    return gantt(services.simulate(problem, plan, schedule), capacity=capacity)


def cut(whole: Gantt, most_rows: int) -> tuple[Gantt, int]:
    """So many rows of devices, links and memory each, and how many rows are left out."""
    lanes = [row for row in whole.rows if not row.link]
    links = [row for row in whole.rows if row.link]
    shown = (*lanes[:most_rows], *links[:most_rows])
    smaller = replace(whole, rows=shown, memory=whole.memory[:most_rows], capacity=whole.capacity[:most_rows])
    return smaller, len(whole.rows) - len(shown)


def _only_svg(path: Path) -> None:
    if path.suffix != ".svg":
        raise PipebenchError(f"cannot draw this to {str(path)!r}", "end it in .svg")
