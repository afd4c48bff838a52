"""`python -m tests.fuzz [INPUTS]`: fuzz every reader, and every command that takes a file (`nox -s fuzz`)."""

import sys
import tempfile
import time
from pathlib import Path

import click

from tests.fuzz.cases import Cases
from tests.fuzz.outcomes import Outcome
from tests.fuzz.report import failures, figures
from tests.fuzz.runner import Run, run
from tests.fuzz.seeds import Workshop

INPUTS = 100_000


@click.command()
@click.argument("inputs", type=click.IntRange(1), default=INPUTS)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed gives other inputs.")
@click.option("--first", type=click.IntRange(0), default=0, help="The number of the first input.")
@click.option("--only", default="", help="Targets with this in their name.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes side by side.")
@click.option("--kept", type=click.Path(path_type=Path), default=Path("fuzz-failures"), help="Where failures go.")
def command(inputs: int, seed: int, first: int, only: str, workers: int, kept: Path) -> None:
    """Fuzz with so many INPUTS. Exit code 1 where one was neither accepted nor refused in one line."""
    asked = Run(inputs, seed, first, only, workers)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pipebench-fuzz-") as scratch:
        fixed = Path(scratch) / "fixed"
        cases = Cases(Workshop(fixed).seeds(), seed, only)
        outcomes = run(asked, fixed, Progress(inputs))
    for line in (*failures(outcomes, cases, asked, kept), *figures(outcomes, cases)):
        click.echo(line)
    click.echo(f"{time.monotonic() - start:.0f} s, seed {seed}, inputs {first} to {first + inputs - 1}")
    sys.exit(any(outcome.failure for outcome in outcomes))


class Progress:
    """Counts outcomes on stderr, a line for each hundredth of the run and for each failure."""

    def __init__(self, inputs: int) -> None:
        self._every = max(500, inputs // 100)
        self._done = self._failed = 0

    def __call__(self, outcome: Outcome) -> None:
        """Count one."""
        self._done += 1
        self._failed += bool(outcome.failure)
        if outcome.failure:
            click.echo(f"case {outcome.number}: {outcome.failure}", err=True)
        if self._done % self._every == 0:
            click.echo(f"{self._done} inputs, {self._failed} failed", err=True)


if __name__ == "__main__":
    command()
