"""pipebench track record: measure a night and add it to the history."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from pipebench.cli.application import open_host, show_new_warnings
from pipebench.cli.commands.planning.compare import PLANNERS_HELP
from pipebench.cli.commands.track.options import duration_s, history_option
from pipebench.cli.completion import of_slot, some_of
from pipebench.cli.option_groups import HOW, WHO, GroupedCommand, option
from pipebench.cli.parameters import REAL, OneOf, finite_seconds, memory_bytes, trust_in_files, trust_option
from pipebench.cli.terminal import print_json, say
from pipebench.cli.workload_options import SEED, chosen_workloads, selection, workload_options
from pipebench.documents.units import quantity
from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.domain.problem import RegimeMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipebench.bench.trials.comparison import Request
    from pipebench.hooks.manager import Host
    from pipebench.track.nights.night import Night


REGIMES = ("sync", "async", "both")


@click.command(cls=GroupedCommand)
@history_option
@option(
    WHO,
    "--planners",
    shell_complete=some_of(of_slot("planners")),
    multiple=True,
    help=f"{PLANNERS_HELP} Default: the suite's, or every planner.",
)
@option(
    WHO,
    "--regime",
    type=OneOf(REGIMES),
    help="Each planner in this one; both: in each that it plans for  [default: the first that it plans for]",
)
@option(HOW, "--budget", callback=duration_s, default="20m", show_default=True, help="Time for the night.")
@option(HOW, "--timeout", type=REAL, callback=finite_seconds, help="Seconds for one search  [default: 300]")
@option(HOW, "--search-memory", callback=memory_bytes, help="Memory for one search, such as 4GB.")
@option(HOW, "--seed", type=SEED, help="Seed of everything random  [default: 0]")
@option(
    HOW,
    "--benchmark-json",
    type=click.Path(),
    multiple=True,
    help="Import what pytest --benchmark-json FILE wrote; several times for several runs of this night.",
)
@option(HOW, "--import-only", is_flag=True, help="Run nothing, only import.")
@trust_option
@workload_options
def command(
    history: Path, budget: float, benchmark_json: tuple[str, ...], import_only: bool, **choice: Any
) -> int:
    """Run every planner on the workloads, first for plans and work counters, then in turns for search times.

    The night is a line of the history, with the class of this machine. A time that is far off is measured again
    at once. Without models, profiles or a suite: the default suite. A night that ends early is kept as far as it
    came.
    """
    from pipebench.bench.searches.isolation.client import isolation
    from pipebench.track.against.installation import describe_revision, repository
    from pipebench.track.measurement.benchmark_json import read_nightly_benchmarks
    from pipebench.track.measurement.record import prepare, record
    from pipebench.track.nights.conditions import this_machine

    if import_only and not benchmark_json:
        raise PipebenchError("--import-only imports a file", "name it with --benchmark-json")
    now = datetime.now(UTC)
    imported = read_nightly_benchmarks(benchmark_json, this_machine(), now) if benchmark_json else None
    top = repository(Path.cwd())
    revision = describe_revision(top) if top else ""
    if imported is not None:
        revision = revision_of(imported.commit, revision, top)
    opened = prepare(history, now, imported)
    for notice in opened.notices:
        say(f"note: {notice}", err=True)
    if not opened.of_class(this_machine()):
        say(f"note: a machine not seen before in {history}: {this_machine().words}", err=True)
    host = open_host()
    request = None
    if not import_only:
        isolation().warm_up()
        request = _request(host, choice)
        for line in about_regimes(request):
            say(f"note: {line}", err=True)
    show_new_warnings(host)
    night = record(host, request, opened, budget, revision, imported, _Watcher())
    for line in night.notices:
        say(f"note: {line}", err=True)
    for each in night.measured:
        if each.no_plan is not None:
            say(each.no_plan.words, err=True)
    say(about(night, opened.file), err=True)
    # nothing measured is a failure, a planner that fails is a column of the night
    return ExitCode.OK if night.measured or night.benchmarks else ExitCode.NOTHING_RAN


def revision_of(commit: str, revision: str, top: Path | None) -> str:
    """The revision of a night with benchmarks. commit: that they ran at.

    Raises PipebenchError: the working tree is at another one.
    """
    from pipebench.track.against.installation import commit_of

    head = (commit_of(top, "HEAD") if top else None) or ""
    if commit and head and commit != head:
        raise PipebenchError(
            f"the benchmarks ran at commit {commit[:9]}, the working tree is at {head[:9]}",
            "run the benchmarks again",
        )
    return revision or commit[:9]


def about(night: "Night", file: Path) -> str:
    """What was added, in one line."""
    timed = sum(each.paired is not None for each in night.measured)
    benchmarks = f", {quantity(len(night.benchmarks), 'benchmark')}" if night.benchmarks else ""
    subjects = quantity(len(night.measured), "subject")
    return f"{subjects}, {timed} timed{benchmarks}, in {night.spent_s:.0f} s: added to {file}"


def about_regimes(request: "Request") -> "Iterator[str]":
    """Which planners plan for a regime too in which they are not recorded; one line for each regime that is."""
    from pipebench.bench.trials.comparison import home_regime, planned_regimes

    if request.regimes or request.own_regimes is not None:
        return
    both = [planner for planner in request.planners if len(planned_regimes(planner)) > 1]
    for regime in sorted({home_regime(planner) for planner in both}):
        names = [planner.label for planner in both if home_regime(planner) == regime]
        plan = "plans" if len(names) == 1 else "plan"
        yield f"{', '.join(names)} {plan} for both regimes; {regime} is recorded, --regime both records both"


def _request(host: "Host", choice: dict[str, Any]) -> "Request":
    from dataclasses import replace

    from pipebench.bench.suites import Settings, settle
    from pipebench.bench.suites.selection import chosen_suites
    from pipebench.bench.trials.comparison import comparison_request
    from pipebench.hooks.syntax import split_list

    regime = choice.pop("regime")
    names = tuple(part for text in choice.pop("planners") for part in split_list(text))
    said = Settings(
        planners=names,
        regimes=(regime,) if regime in get_args(RegimeMode) else (),
        timeout_s=choice.pop("timeout"),
        memory_bytes=choice.pop("search_memory"),
        seed=choice.pop("seed"),
    )
    trusting = trust_in_files(choice.pop("trust"))
    settings = settle(chosen_suites(selection(choice)), said, trusting)
    if not settings.planners:
        settings = replace(settings, planners=tuple(sorted(host.slot("planners"))))
    if regime == "both":
        settings = replace(settings, regimes=())
    request = comparison_request(host, lambda: chosen_workloads(host, choice), settings, trust=trusting)
    return replace(request, own_regimes="all" if regime == "both" else None)


class _Watcher:
    """One line for each part of the night."""

    def phase(self, what: str) -> None:
        """A new part begins."""
        say(f"{what} …", err=True)

    def not_added(self, night: "Night") -> None:
        """What was measured is shown, as it is nowhere else."""
        print_json(night)

    def compiling(self, planners: list[str]) -> None:
        """Kernels are compiled: nothing is timed meanwhile."""
        say(f"compiling kernels of {', '.join(planners)} …", err=True)

    def starting(self, trial: object) -> None:
        """Nobody is told of single trials."""

    def waiting(self) -> None:
        """Another run of pipebench has the machine: times of this night may be missing."""
        say("another pipebench run has this machine: waiting for it", err=True)
