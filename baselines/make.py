"""Make the baselines of this class of machine anew: `python baselines/make.py`, with nothing to commit.

It runs the benchmarks against plain Python three times, then the planners of the papers on a sample of every
suite, and puts the night that comes of it in the place of those of this class. Nights of other classes stay; plans
that no night names any longer are left out. Some half an hour on two cores that do nothing else.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pipebench.bench.store.journal import MANIFEST, OBJECTS
from pipebench.track.nights.conditions import this_machine
from pipebench.track.nights.history import NIGHTS, NightJournal, open_history, plans_of

HERE = Path(__file__).resolve().parent
PROCESSES = 3
"""Of the benchmarks: one process is as fast as its memory lies."""
BENCHMARKS = ("tests/benchmarks/test_against_plain_python.py", "tests/benchmarks/test_calibration_speed.py")
ACKNOWLEDGED = "# Changes that are meant to be: `pipebench track ack EVENT --reason TEXT` adds one.\n"


def run(*words: str) -> None:
    """A module of this interpreter's, in the checkout; ends the script where it fails."""
    subprocess.run([sys.executable, "-m", *words], cwd=HERE.parent, check=True)


def make(budget: str, processes: int) -> Path:
    """The new file."""
    with TemporaryDirectory() as folder:
        history = Path(folder) / "history"
        keep_others(history)
        words: list[str] = []
        for number in range(processes):
            file = Path(folder) / f"{number}.json"
            run("pytest", "--benchmark-enable", f"--benchmark-json={file}", *BENCHMARKS)
            words += ["--benchmark-json", str(file)]
        suite = str(HERE / "samples.toml")
        run(
            "pipebench", "track", "record", "--history", str(history), "--suite", suite, "--budget", budget, *words
        )
        shutil.rmtree(HERE / OBJECTS)
        shutil.copytree(history / OBJECTS, HERE / OBJECTS)
        for name in (MANIFEST, NIGHTS.file):
            shutil.copyfile(history / name, HERE / name)
    (HERE / "acknowledged.toml").write_text(ACKNOWLEDGED)
    return HERE / NIGHTS.file


def keep_others(folder: Path) -> None:
    """A history with the nights of other classes of machine."""
    history, journal = open_history(HERE), NightJournal.open(folder)
    for kept in history.nights:
        if kept.machine != this_machine():
            plans = [plan for name in plans_of(kept.night) if (plan := history.plan(name))]
            journal.append(kept.machine, kept.night, plans)


def main() -> None:
    """Make them, and say what was made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="20m", help="time for the planners (default: 20m)")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="runs of the benchmarks; 0: none")
    said = parser.parse_args()
    made = make(said.budget, said.processes)
    print(f"{made} made")


if __name__ == "__main__":
    main()
