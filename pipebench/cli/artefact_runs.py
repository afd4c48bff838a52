"""Artefacts run one after the other: which cells, how long they will take, and what came of each."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pipebench.cli.application import show_new_warnings
from pipebench.cli.artefact_files import ArtefactRun, write_artefact
from pipebench.cli.terminal import say
from pipebench.domain.errors import ExitCode, PipebenchError

if TYPE_CHECKING:
    from pipebench.bench.reproduction.reproduce import ReproductionPlan
    from pipebench.bench.reproduction.timelines import Timeline
    from pipebench.bench.store import Store
    from pipebench.bench.sweeps.run_plan import FinishedTrial
    from pipebench.bench.sweeps.sweep import Where
    from pipebench.domain.artefact import Cell
    from pipebench.hooks.descriptors import Artefact
    from pipebench.hooks.manager import Host
    from pipebench.hooks.reproduction import Reproduction
    from pipebench.report.gantt.gantt import Gantt

T = TypeVar("T")
STOPPED = "the run was stopped before it"


@dataclass(frozen=True, slots=True)
class ReproduceOptions:
    """What the command line says of the run.

    full_within_s: all cells of those artefacts that are expected to take no longer; None: no such limit.
    framework: which prices each cell's step; None: the costs that the artefact has.
    """

    full: bool
    full_within_s: float | None
    profiles: tuple[str, ...]
    out: Path | None
    fresh: bool
    retry_failed: bool
    framework: str | None = None

    @property
    def words(self) -> list[str]:
        """The user's profiles and framework, as typed."""
        found = [word for profile in self.profiles for word in ("--profile", profile)]
        return found if self.framework is None else [*found, "--framework", self.framework]


@dataclass(frozen=True, slots=True)
class ChosenArtefact:
    """An artefact with the cells to run. whole: all cells of the paper. command: how to run these again."""

    artefact: "Artefact"
    reproduction: "Reproduction"
    suite: "Sequence[Cell]"
    whole: "Sequence[Cell]"
    command: str

    @property
    def name(self) -> str:
        """As the user types it."""
        return self.artefact.name

    @property
    def expected_s(self) -> float:
        """About how long all its cells take."""
        return sum(cell.expected_s for cell in self.suite)


def choose_cells(host: "Host", name: str, options: ReproduceOptions) -> ChosenArtefact:
    """The artefact and its cells; nothing is made yet. Raises PipebenchError for a name that is not there."""
    described: Any = host.find("artefacts", name).component
    reproduction = host.load(described)()
    suites = (reproduction.suite(full, options.profiles) for full in (True, False))
    whole, part = (_priced(cells, options.framework) for cells in suites)
    fits = options.full_within_s is not None and sum(cell.expected_s for cell in whole) <= options.full_within_s
    suite = whole if options.full or fits else part
    words = [name, *(["--full"] if suite != part else []), *options.words]
    return ChosenArtefact(described, reproduction, suite, whole, shlex.join(["pipebench", "reproduce", *words]))


def _priced(cells: "Iterable[Cell]", framework: str | None) -> "tuple[Cell, ...]":
    """The cells, as a framework runs their steps where one is named."""
    from msgspec.structs import replace as replace_fields

    return tuple(replace_fields(cell, framework=framework) if framework else cell for cell in cells)


class ArtefactRuns:
    """A run of one artefact, whose errors are the command's; or of several, where each costs itself only.

    not_run: name and reason of each artefact without findings.
    """

    def __init__(
        self, host: "Host", options: ReproduceOptions, store: "Store | None", where: "Where", several: bool
    ) -> None:
        self.not_run: list[tuple[str, str]] = []
        self._host, self._options, self._store, self._where = host, options, store, where
        self._several = several
        self._plans: dict[str, ReproductionPlan] = {}

    def choose(self, names: Sequence[str]) -> list[ChosenArtefact]:
        """The artefacts with the cells to run. Of several it is said how long they take, in all and each."""
        choices = (self._attempt(name, partial(choose_cells, self._host, name, self._options)) for name in names)
        chosen = [each for each in choices if each is not None]
        if self._several:
            _say_expectation(chosen, self._where.jobs)
        if self._several and self._store is not None:
            say("looking up what the store holds …", err=True)
            chosen = [each for each in chosen if self._attempt(each.name, partial(self._plan, each)) is not None]
            _say_remainder(list(self._plans.values()), self._where.jobs)
        return chosen

    def run(
        self, chosen: Sequence[ChosenArtefact], show: Callable[[ArtefactRun], None]
    ) -> tuple[list[ArtefactRun], PipebenchError | None]:
        """Run them one after the other and show each. The error says that the run was stopped."""
        done: list[ArtefactRun] = []
        for place, each in enumerate(chosen):
            found = self._attempt(each.name, partial(self._run_one, each))
            if found is None:
                continue
            done.append(found)
            show(found)
            if found.interrupted:
                self.not_run += [(other.name, STOPPED) for other in chosen[place + 1 :]]
                cells = len(found.results)
                return done, PipebenchError(f"interrupted after {cells} cells", exit_code=ExitCode.INTERRUPTED)
        return done, None

    def _plan(self, chosen: ChosenArtefact) -> "ReproductionPlan":
        from pipebench.bench.reproduction.reproduce import work_of

        again = self._options.fresh, self._options.retry_failed
        work = work_of(self._host, chosen.suite, self._store, *again)
        show_new_warnings(self._host)
        self._plans[chosen.name] = work
        return work

    def _run_one(self, chosen: ChosenArtefact) -> ArtefactRun:
        from pipebench.bench.reproduction.timelines import timelines

        work = (self._plans.get(chosen.name) or self._plan(chosen)).up_to_date()
        del self._plans[chosen.name]  # its problems are large
        kept = "" if self._store is not None else " (nothing is kept without --out)"
        say(f"{chosen.name}: {about(work, self._where.jobs)}{kept}", err=True)
        finished, interrupted = _finish(self._host, work, self._where)
        results = work.results(finished)
        found = ArtefactRun(
            artefact=chosen.artefact,
            suite=chosen.suite,
            whole=chosen.whole,
            results=results,
            found=chosen.reproduction.judge([each for each in results if each.tells]),
            figure=chosen.reproduction.series(results),
            drawn=_gantts(list(timelines(self._host, work, finished, self._store))),
            command=chosen.command,
            interrupted=interrupted,
        )
        if self._options.out is not None:
            write_artefact(self._options.out, found)
        return found

    def _attempt(self, name: str, attempt: Callable[[], T]) -> T | None:
        """What the attempt gives; None, and a warning, where one artefact of several fails."""
        try:
            return attempt()
        except PipebenchError as error:
            if not self._several or error.exit_code == ExitCode.INTERRUPTED:
                raise
            say(f"warning: {name}: {error}", err=True)
            self.not_run.append((name, str(error)))
            return None


def about(work: "ReproductionPlan", jobs: int) -> str:
    """How many cells there are, how many are left, about how long they take."""
    from pipebench.report.units import duration

    left = len(work.agenda.to_run)
    known = f", {len(work.agenda.cached)} in the store" if work.agenda.cached else ""
    refused = f", {len(work.refused)} cannot be run" if work.refused else ""
    return f"{len(work.cells)} cells{known}{refused}, {left} to run: about {duration(work.expected_s / jobs)}"


def _say_expectation(chosen: Sequence[ChosenArtefact], jobs: int) -> None:
    """A line for each artefact: its cells and about how long all of them take; then all artefacts."""
    from pipebench.report.units import duration

    wide = max((len(each.name) for each in chosen), default=0)
    lines = [(each.name, len(each.suite), each.expected_s) for each in chosen]
    lines.append(("all", sum(cells for _, cells, _ in lines), sum(seconds for _, _, seconds in lines)))
    for name, cells, expected_s in lines:
        say(f"{name:<{wide}}  {cells:>5} cells  about {duration(expected_s / jobs)}", err=True)


def _say_remainder(works: "Sequence[ReproductionPlan]", jobs: int) -> None:
    from pipebench.bench.reproduction.reproduce import remainder
    from pipebench.report.units import duration

    left = remainder(works)
    expected = duration(left.expected_s / jobs)
    say(f"{left.in_store} cells in the store, {left.to_run} to run (shared ones once): about {expected}", err=True)


def _finish(host: "Host", work: "ReproductionPlan", where: "Where") -> "tuple[list[FinishedTrial], bool]":
    """The finished trials, and whether the user stopped the run."""
    from pipebench.bench.reproduction.reproduce import run_cells
    from pipebench.cli.progress import Progress

    finished = []
    interrupted = False
    with Progress(work.agenda) as progress:
        try:
            for each in run_cells(host, work, where, progress):
                finished.append(each)
                if not each.cached:
                    progress.advance(each.outcome)
        except KeyboardInterrupt:
            interrupted = True
    return finished, interrupted


def _gantts(drawn: "list[Timeline]") -> "list[Gantt]":
    """Lanes alone, all as long as the longest."""
    from pipebench.report.gantt.gantt import gantt

    longest = max((each.trace.total_ns for each in drawn), default=0)
    return [replace(gantt(each.trace, each.title, longest, links=False), memory=()) for each in drawn]
