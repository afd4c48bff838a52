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
INTEGERS = """
import pulp
from pipebench.system.highs import solve
program = pulp.LpProblem("program", pulp.LpMaximize)
program += 3 * (a := pulp.LpVariable("a", 0, 1, "Integer")) + 2 * (b := pulp.LpVariable("b", 0, 3, "Integer"))
program += 2 * a + 3 * b <= 7.5
print(solve(program, timeLimit=60, gapRel=0.0), a.value(), b.value())
"""


@pytest.mark.parametrize("program", [FIRST, AFTER_ANOTHER], ids=["first", "after another with all threads"])
def test_a_bound_is_the_same_and_nothing_is_printed_beside_it(program: str) -> None:
    """HiGHS 1.16 prints who made it at the first instance of a process, and refuses other numbers of threads."""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == f"{layers_ns(layers(12, 5, 10**4, mini_batch=4))}\n"


def test_integers_are_found_on_the_threads_of_another() -> None:
    program = AFTER_ANOTHER.replace(FIRST, INTEGERS)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True 1.0 1.0\n"


FREE = """
import pulp
program = pulp.LpProblem("program", pulp.LpMaximize)
variable = pulp.LpVariable("x", 0, 7)
program += variable
program.solve(pulp.HiGHS(msg=False, threads=3))
print(pulp.LpStatus[program.status])
"""


@pytest.mark.parametrize(
    "before", [FIRST, INTEGERS, "from pipebench.bench.searches.calibration import calibrate\ncalibrate()"]
)
def test_who_comes_after_has_as_many_threads_as_it_likes(before: str) -> None:
    """A notebook, or a planner that is a child of the process that calibrates."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", before + FREE]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("Optimal\n"), done.stdout


def test_solvers_are_made_by_these_files_alone() -> None:
    """Others would print, or keep threads. The calibration gives them back itself."""
    root = Path(__file__).parents[2]
    files = [*root.glob("pipebench/**/*.py"), *root.glob("plugins/**/*.py")]
    makes = {file.name for file in files if "Highs()" in (text := file.read_text()) or "pulp.HiGHS(" in text}
    assert makes == {"calibration.py", "highs.py"}
