"""Options that describe a workload, for every command that selects some, and the workloads that they give."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pipebench.cli.completion import clusters, files, frameworks, of_slot, one_of, profiles, some_of, suites
from pipebench.cli.option_groups import option
from pipebench.cli.parameters import NUMBERS, OneOf, WholeFrom
from pipebench.cli.terminal import say
from pipebench.defaults import SUITE
from pipebench.domain.limits import MOST_SEED
from pipebench.domain.workload import WHAT, Field, keyword_fields

if TYPE_CHECKING:
    from pipebench.bench.problems.workload import Workload
    from pipebench.bench.suites.selection import Selection
    from pipebench.hooks.manager import Host

F = TypeVar("F", bound=Callable[..., Any])

SEED = WholeFrom(0, MOST_SEED)
"""Seeds of everything random."""

COMPLETIONS = {
    "cluster": one_of(clusters),
    "framework": one_of(frameworks),
    "profiler": one_of(of_slot("profilers")),
}
"""Fields of a workload whose values the shell can complete with names."""

_SOURCES = [
    option(
        WHAT,
        "--models",
        "-m",
        shell_complete=some_of(of_slot("models")),
        multiple=True,
        help="Models, name[option=value], profiled by --profiler.",
    ),
    option(
        WHAT,
        "--profile",
        "-p",
        "profiles",
        shell_complete=some_of(profiles),
        multiple=True,
        help="Profiles: shipped names or files.",
    ),
    option(
        WHAT,
        "--config",
        "configs",
        shell_complete=files,
        multiple=True,
        help="A language model's Hugging Face config.json.",
    ),
    option(WHAT, "--seq", "sequence", type=WholeFrom(1), help="With --config: tokens a sample."),
    option(
        WHAT,
        "--suite",
        "suites",
        shell_complete=some_of(suites),
        multiple=True,
        help=f"Suites, by name or TOML file (nothing named: {SUITE}).",
    ),
]


def workload_options(function: F) -> F:
    """Add all workload options to a command; they arrive as the keywords of bench.suites.selection.Selection."""
    for add in reversed([*_SOURCES, *map(_option, keyword_fields().values())]):
        function = add(function)
    return function


def _option(field: Field) -> Callable[[F], F]:
    """The option of a field of WorkloadSpec."""
    spellings = [field.flag, *([field.short] if field.short else [])]
    return option(
        field.group,
        *spellings,
        type=_type(field),
        help=field.help,
        shell_complete=COMPLETIONS.get(field.name),
    )


def _type(field: Field) -> Any:
    """Words that are listed, a number within its limits, or text."""
    if field.choices:
        return OneOf(field.choices)
    number = NUMBERS.get(field.kind)
    return field.kind if number is None else number(*field.limits)


def chosen_workloads(host: "Host", choice: dict[str, Any]) -> "list[Workload]":
    """The workloads of the options above; what was assumed in reading their files goes to stderr.

    Raises PipebenchError for names, files and numbers that are wrong.
    """
    from pipebench.bench.suites.selection import select

    workloads = select(host, selection(choice))
    for notice in dict.fromkeys(notice for workload in workloads for notice in workload.notices):
        say(f"note: {notice}", err=True)
    return workloads


def selection(choice: dict[str, Any]) -> "Selection":
    """What the options select."""
    from pipebench.bench.suites.selection import Selection

    return Selection(**choice)
