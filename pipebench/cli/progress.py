"""Progress on stderr: what is to run, how far it is, and how long kernels took to compile."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pipebench.bench.searches.timing import CompilationWatch
from pipebench.bench.sweeps.sweep import PATIENCE_S
from pipebench.cli.terminal import console, say
from pipebench.report.problem_names import short_subject

if TYPE_CHECKING:
    from pipebench.bench.sweeps.run_plan import RunPlan
    from pipebench.bench.trials.trial import Outcome, Trial

WORTH_SAYING_S = 0.5
LATE_S = 3.0
"""Off a terminal, work that takes longer is said in a line: nobody should wait and not know for what."""


def about_compiling(planners: list[str]) -> str:
    """The line about kernels that are about to be compiled. How long that takes differs by machine and load."""
    from pipebench.system.kernel_folder import kernel_folder

    once = ", once on this machine" if kernel_folder() is not None else ""
    return f"compiling the kernels of {', '.join(planners)}{once} …"


class LateLine:
    """Off a terminal, a line on stderr for work that takes longer than LATE_S; none for other work.

    words: what goes on at present.
    """

    def __init__(self) -> None:
        self.words = ""
        self._off = not console(stderr=True).is_terminal
        self._timer: threading.Timer | None = None

    def begin(self, words: str) -> None:
        """Work begins, and what was going on before is over."""
        self.end()
        self.words = words
        if self._off:
            self._timer = threading.Timer(LATE_S, lambda: say(self.words, err=True))
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        """It is done."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Progress:
    """A bar with an estimate while trials run; off terminals a line for each that takes long.

    One line about a store before, about compilation after.
    """

    def __init__(self, plan: "RunPlan") -> None:
        self._plan = plan
        self._compile_s = 0.0
        self._compiling_since_s: float | None = None
        self._waited = False
        self._late = LateLine()

    def __enter__(self) -> "Progress":
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._console = console(stderr=True)
        if self._plan.store is not None:
            self._console.print(about_store(self._plan), markup=False, soft_wrap=True)
        columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()
        shown = self._console.is_terminal
        self._bar: Any = Bar(
            *columns, TimeRemainingColumn(), console=self._console, transient=True, disable=not shown
        )
        self._bar.__enter__()
        self._task = self._bar.add_task("starting …", total=len(self._plan.to_run))
        self._watch = CompilationWatch()
        self._watch.__enter__()
        return self

    def compiling(self, planners: list[str]) -> None:
        """Say that kernels are being compiled; until the next trial starts."""
        self._compiling_since_s = time.monotonic()
        self._console.print(about_compiling(planners), markup=False, soft_wrap=True)
        self._bar.update(self._task, description="compiling kernels …")

    def starting(self, trial: "Trial") -> None:
        """Say which trial runs now."""
        if self._compiling_since_s is not None:
            self._compile_s += time.monotonic() - self._compiling_since_s
            self._compiling_since_s = None
        workload = trial.workload
        what = f"{trial.planner.label} on {short_subject(workload.name) or workload.profile.name} ({trial.regime})"
        self._bar.update(self._task, description=what)
        self._late.begin(f"running {what} …")

    def waiting(self) -> None:
        """Say once that each following trial may have to wait for other work."""
        if not self._waited:
            self._waited = True
            self._console.print(
                f"another pipebench run has this machine: waiting up to {PATIENCE_S:g} s, then running beside it",
                markup=False,
                soft_wrap=True,
            )

    def advance(self, outcome: "Outcome") -> None:
        """Count one more finished trial."""
        self._late.end()
        self._compile_s += outcome.compile_s
        self._bar.update(self._task, advance=1, description=f"{outcome.row.planner}: {outcome.row.status}")

    def __exit__(self, *error: object) -> None:
        self._late.end()
        self._watch.__exit__(*error)
        self._bar.__exit__(None, None, None)
        spent_s = self._watch.seconds + self._compile_s
        if spent_s >= WORTH_SAYING_S:
            self._console.print(about_compilation(spent_s), markup=False, soft_wrap=True)


@contextlib.contextmanager
def long_work(words: str) -> Iterator[Callable[[str], None]]:
    """On a terminal, say at once what goes on, gone when it is done; elsewhere in a line where it takes long.

    What it gives changes the words.
    """
    from rich.markup import escape

    late = LateLine()

    def update(words: str) -> None:
        status.update(escape(words))
        late.words = words

    with console(stderr=True).status(escape(words)) as status:
        late.begin(words)
        try:
            yield update
        finally:
            late.end()


LOG_S = 5.0
"""Between two lines of a search that has found nothing better."""


def solver_log() -> Callable[[str], None]:
    """Prints to stderr what is known of the best plan: at once where it is new, else every few seconds."""
    told_s, last = 0.0, ""

    def show(words: str) -> None:
        nonlocal told_s, last
        incumbent = words.partition("), ")[0]
        if incumbent != last or time.monotonic() - told_s >= LOG_S:
            told_s, last = time.monotonic(), incumbent
            say(f"  {words}", err=True)

    return show


def about_store(plan: "RunPlan") -> str:
    """How many trials the store has, how many are left, and how many of the stored failed or ran beside other
    work.
    """
    remarks = (
        [f"{plan.cached_failures} cached failures: --retry-failed runs them again"] if plan.cached_failures else []
    )
    if plan.beside:
        remarks.append(f"{plan.beside} cached rows ran beside other work: --fresh times all again")
    line = f"{len(plan.cached)} cached, {len(plan.to_run)} to run"
    return f"{line} ({'; '.join(remarks)})" if remarks else line


def about_compilation(spent_s: float) -> str:
    """The line about seconds of compiling kernels: paid once, or in every run where no cache keeps them."""
    from pipebench.system.kernel_folder import kernel_folder

    if kernel_folder() is not None:
        return f"compiled kernels in {spent_s:.1f} s (once on this machine)"
    return (
        f"compiled kernels in {spent_s:.1f} s, as every run will: no cache folder can be written "
        "(set NUMBA_CACHE_DIR to one that can)"
    )
