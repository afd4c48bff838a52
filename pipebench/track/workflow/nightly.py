"""The nightly workflow of a repository that tracks a planner.

Two jobs: what runs the planners may read the repository and nothing else; what may write runs no code of the
repository, and adds to the history only. A step that fails fails the night, but what was found before is kept.
The steps are in nightly.yml.
"""

import re
import shlex
from dataclasses import dataclass
from importlib.resources import files

from pipebench.domain.errors import PipebenchError

MINUTES_BESIDE = 40
"""Of the job, for installing, compiling and reporting."""
BENCHMARK_MINUTES = 60
"""For all runs of the benchmarks; they have no budget of their own."""
ACTIONS = {
    "actions/checkout": ("3d3c42e5aac5ba805825da76410c181273ba90b1", "v7.0.1"),
    "actions/setup-python": ("5fda3b95a4ea91299a34e894583c3862153e4b97", "v7.0.0"),
    "actions/upload-artifact": ("bbbca2ddaa5d8feaa63e36b76fdaad77386f024f", "v7.0.0"),
    "actions/download-artifact": ("3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c", "v8.0.1"),
    "actions/upload-pages-artifact": ("fc324d3547104276b827a68afc52ff2a11cc49c9", "v5.0.0"),
    "actions/deploy-pages": ("cd2ce8fcbc39b97be8ca5fce6e763baed58fa128", "v5.0.0"),
}
"""The commit of each action, and its tag: a tag can be moved, a commit cannot. Our own workflows too use these."""
BENCHMARK_RUNS = 3
"""Processes that run the benchmarks in a night: one process is as fast as its memory lies."""
BRANCH_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
CRON = re.compile(r"[0-9*,/-]+( [0-9*,/A-Za-z-]+){4}")


@dataclass(frozen=True, kw_only=True)
class Nightly:
    """What a workflow is made of. command: the line that makes it again. record: options of `track record`.

    install: command that installs the planner, pipebench, and what the benchmarks need. benchmarks: what pytest is
    given, words of a shell; empty where there are none.
    """

    command: tuple[str, ...]
    record: tuple[str, ...] = ()
    branch: str = "pipebench-history"
    budget_s: float = 1200.0
    budget: str = "20m"
    cron: str = "23 2 * * *"
    install: str = "python -m pip install -c constraints.txt ."
    python: str = "3.11"
    benchmarks: str = ""

    def __post_init__(self) -> None:
        if not BRANCH_NAME.fullmatch(self.branch) or ".." in self.branch or self.branch.endswith(("/", ".lock")):
            raise PipebenchError(f"{self.branch!r} is not the name of a branch")
        if not CRON.fullmatch(self.cron):
            raise PipebenchError(f"{self.cron!r} is not a cron line of five fields", "such as '23 2 * * *'")
        for text in (*self.command, *self.record, self.install, self.python, self.benchmarks):
            if not text.isprintable() or "${{" in text:
                raise PipebenchError(f"{text!r} cannot stand in a workflow")
        try:
            shlex.split(self.benchmarks)
        except ValueError as error:
            raise PipebenchError(f"{self.benchmarks!r} are no words for pytest: {error}") from None

    @property
    def text(self) -> str:
        """The workflow file."""
        from jinja2 import Environment, StrictUndefined

        environment = Environment(
            undefined=StrictUndefined,
            keep_trailing_newline=True,
            trim_blocks=True,
            variable_start_string="[[",  # GitHub's own are ${{ }}
            variable_end_string="]]",
            block_start_string="[%",
            block_end_string="%]",
        )
        minutes = round(self.budget_s / 60)
        return environment.from_string((files(__package__) / "nightly.yml").read_text("utf-8")).render(
            action=action,
            command=shlex.join(self.command),
            cron=self.cron,
            minutes=minutes + MINUTES_BESIDE + (BENCHMARK_MINUTES if self.benchmarks else 0),
            record_minutes=minutes + MINUTES_BESIDE // 2,
            benchmark_minutes=BENCHMARK_MINUTES,
            python=self.python,
            install=self.install,
            branch=self.branch,
            options=shlex.join(("--budget", self.budget, *self.record)),
            runs=" ".join(str(number) for number in range(1, BENCHMARK_RUNS + 1)),
            benchmarks=shlex.join(shlex.split(self.benchmarks)),
        )


def action(name: str) -> str:
    """An action as a workflow names it: by its commit, the tag beside it."""
    commit, tag = ACTIONS[name]
    return f"{name}@{commit} # {tag}"
