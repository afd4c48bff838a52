"""The solver behind bounds, in processes of its own: what it prints, and whom it shares one with."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bounds.test_layers_bound import layers, layers_ns

FIRST = """
from tests.bounds.test_layers_bound import layers, layers_ns
print(layers_ns(layers(12, 5, 10**4, mini_batch=4)))
"""
AFTER_ANOTHER = f"""
import highspy, os
kept = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
highspy.Highs().run()
os.dup2(kept, 1)
{FIRST}
"""


@pytest.mark.parametrize("program", [FIRST, AFTER_ANOTHER], ids=["first", "after another with all threads"])
def test_a_bound_is_the_same_and_nothing_is_printed_beside_it(program: str) -> None:
    """HiGHS 1.16 prints who made it at the first instance of a process, and refuses other numbers of threads."""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == f"{layers_ns(layers(12, 5, 10**4, mini_batch=4))}\n"


FREE = """
import pulp
program = pulp.LpProblem("program", pulp.LpMaximize)
variable = pulp.LpVariable("x", 0, 7)
program += variable
program.solve(pulp.HiGHS(msg=False, threads=3))
print(pulp.LpStatus[program.status])
"""


@pytest.mark.parametrize(
    "before", [FIRST, "from pipebench.bench.searches.calibration import calibrate\ncalibrate()"]
)
def test_who_comes_after_has_as_many_threads_as_it_likes(before: str) -> None:
    """A notebook, or a planner that is a child of the process that calibrates."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", before + FREE]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("Optimal\n"), done.stdout


def test_only_one_file_makes_solvers() -> None:
    """Others would print, or run on more than one thread."""
    root = Path(__file__).parents[2]
    files = [*root.glob("pipebench/**/*.py"), *root.glob("plugins/**/*.py")]
    makes = {file.name for file in files if "Highs()" in (text := file.read_text()) or "pulp.HiGHS(" in text}
    assert makes == {"calibration.py", "highs.py"}
