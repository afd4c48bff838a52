"""A process that runs cases one after the other: `python -m tests.fuzz.worker FIXED SEED ONLY FIRST END STEP`.

Before each case it writes its number, after it the outcome, a line of JSON each. Who reads along ends it when a
case takes too long, and starts another behind that case. Memory is limited; the most that a case took is told.
"""

import gc
import os
import resource
import sys
import tempfile
import warnings
from pathlib import Path

import msgspec
from click.testing import CliRunner

from tests.fuzz.cases import Case, Cases, placed
from tests.fuzz.outcomes import MOST_BYTES, Outcome, judged
from tests.fuzz.seeds import read_seeds

ROOM_BYTES = MOST_BYTES + 2**28
"""What a worker may map beyond what it has mapped when it is ready."""
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def run_case(case: Case, fixed: Path, folder: Path) -> BaseException | None:
    """Run one case in this process. Returns what it raised."""
    from pipebench.cli.groups import Invocation
    from pipebench.cli.main import main

    file, words = placed(case, fixed, folder)
    if case.target.call is not None:
        try:
            case.target.call(case.data, file, fixed)
        except Exception as error:
            return error
        return None
    done = CliRunner().invoke(main, words, obj=Invocation(tuple(words)), standalone_mode=False)
    return done.exception


def _status(name: str) -> int:
    """A figure of this process in bytes; 0 where the system does not tell it."""
    if not STATUS.exists():
        return 0
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def _cpu_s() -> float:
    """CPU seconds of this process and of children that have ended: other work on the machine changes it little."""
    return sum(os.times()[:4])


def _forget_peak() -> None:
    if CLEAR.exists():
        CLEAR.write_text("5")


def measured(case: Case, fixed: Path, folder: Path) -> Outcome:
    """The case with its CPU time and the most memory that the process held meanwhile."""
    _forget_peak()
    start = _cpu_s()
    verdict = judged(run_case(case, fixed, folder))
    seconds = _cpu_s() - start
    return Outcome(
        number=case.number,
        refused=verdict.refused,
        failure=verdict.failure,
        told=verdict.told,
        seconds=seconds,
        peak_bytes=_status("VmHWM"),
    )


def warm(fixed: Path) -> None:
    """Load what commands load, before memory is limited."""
    from pipebench.cli.main import main

    runner = CliRunner()
    for words in (["show", f"{fixed}/plan.json"], ["diff", f"{fixed}/store", f"{fixed}/packed.zip"]):
        runner.invoke(main, words)


def main(arguments: list[str]) -> None:
    """Run cases FIRST, FIRST + STEP, … below END."""
    fixed, run_seed, only = Path(arguments[0]), int(arguments[1]), arguments[2]
    first, end, step = map(int, arguments[3:6])
    told = os.fdopen(os.dup(1), "wb", buffering=0)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    warnings.simplefilter("ignore")
    cases = Cases(read_seeds(fixed), run_seed, only)
    with tempfile.TemporaryDirectory(prefix="pipebench-fuzz-") as scratch:
        folder = Path(scratch)
        os.chdir(folder)
        os.environ["TMPDIR"] = tempfile.tempdir = scratch  # where the lock of timed trials stands
        warm(fixed)
        gc.freeze()  # what is loaded stays: a collection, which every timed search begins with, skips it
        if room := _status("VmSize"):
            resource.setrlimit(resource.RLIMIT_AS, (room + ROOM_BYTES, room + ROOM_BYTES))
        for number in range(first, end, step):
            told.write(b"%d\n" % number)
            outcome = measured(cases.case(number), fixed, folder)
            told.write(msgspec.json.encode(outcome) + b"\n")
            if number % 50 == 0:
                gc.collect()


if __name__ == "__main__":
    main(sys.argv[1:])
