"""Progress on stderr: which trial runs, and how long kernels took to compile."""

from typing import TYPE_CHECKING, Any

from pipebench.bench.compilation import CompilationWatch
from pipebench.cli.application import console

if TYPE_CHECKING:
    from pipebench.bench.trial import Trial

WORTH_SAYING_S = 0.5


class Progress:
    """A status line while trials run (terminals only), and one line about compilation at the end."""

    def __enter__(self) -> "Progress":
        self._console = console(stderr=True)
        self._status: Any = self._console.status("starting …")
        self._status.__enter__()
        self._watch = CompilationWatch()
        self._watch.__enter__()
        return self

    def starting(self, trial: "Trial") -> None:
        """Say which trial runs now."""
        self._status.update(f"{trial.planner.label} on {trial.workload.profile.name} ({trial.regime}) …")

    def __exit__(self, *error: object) -> None:
        self._watch.__exit__(*error)
        self._status.__exit__(None, None, None)
        spent = self._watch.seconds
        if spent >= WORTH_SAYING_S:
            self._console.print(f"compiled kernels in {spent:.1f} s (once on this machine)", markup=False)
