"""What code a component's rows depend on: which edits change its digest, and which do not."""

from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipebench.bench.store import reach
from pipebench.bench.store.python_code import python_code
from pipebench.bench.store.reach import component_code
from pipebench.hooks.manager import Host

NUMBERS = count()
KERNEL = "import numpy\n\nSTEP = 2\n\n\ndef walk(cost):\n    return numpy.cumsum(cost)[STEP:]\n"
SCORE = "from pipebench.costs.model import CostModel\n\n\ndef score(plan):\n    return CostModel(plan).total\n"
PLANNER = """
from pipebench.algorithms.walks import walk
from {name}.parts import cut

def plan(problem, context):
    from pipebench.algorithms import score
    return walk(cut(problem)), score.score(problem)
"""


class Tree:
    """A planner in a package, and a host beside it with kernels of which it uses two."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.name = f"reaching{next(NUMBERS)}"  # the import system remembers packages by name
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.setattr(
            reach, "pipebench", SimpleNamespace(__file__=str(folder / "pipebench" / "__init__.py"))
        )
        self.write("pipebench/__init__.py", "VERSION = 1\n")
        self.write("pipebench/algorithms/__init__.py", '"""Kernels."""\n')
        self.write("pipebench/algorithms/walks.py", KERNEL)
        self.write("pipebench/algorithms/score.py", SCORE)
        self.write("pipebench/algorithms/other.py", "def other(): ...\n")
        self.write("pipebench/costs/model.py", "class CostModel: ...\n")
        self.write(f"{self.name}/__init__.py", "")
        self.write(f"{self.name}/planner.py", PLANNER.format(name=self.name))
        self.write(f"{self.name}/parts.py", "def cut(problem):\n    return list(problem)\n")
        self.write(f"{self.name}/rival.py", "def plan(problem, context):\n    return problem\n")

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def read(self, path: str) -> str:
        return (self.folder / path).read_text()

    def replace(self, path: str, before: str, after: str) -> None:
        text = self.read(path)
        assert before in text
        self.write(path, text.replace(before, after))

    def digest(self, module: str = "planner") -> str:
        return component_code(f"{self.name}.{module}:plan").digest


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    return Tree(tmp_path, monkeypatch)


def test_an_edit_of_the_search_changes_its_planner_and_no_other(tree: Tree) -> None:
    planner, rival = tree.digest(), tree.digest("rival")
    tree.replace(f"{tree.name}/parts.py", "list(problem)", "sorted(problem)")
    assert tree.digest() != planner
    assert tree.digest("rival") == rival


def test_an_edit_of_a_kernel_changes_the_planners_that_reach_it(tree: Tree) -> None:
    for path, before, after in (
        ("pipebench/algorithms/walks.py", "STEP = 2", "STEP = 3"),
        ("pipebench/algorithms/score.py", "total", "least"),
    ):
        planner, rival = tree.digest(), tree.digest("rival")
        tree.replace(path, before, after)
        assert tree.digest() != planner
        assert tree.digest("rival") == rival


def test_what_the_planner_does_not_reach_does_not_matter(tree: Tree) -> None:
    before = tree.digest()
    tree.write("pipebench/algorithms/other.py", "def other():\n    return 1\n")
    tree.write("pipebench/costs/model.py", "class CostModel:\n    total = 7\n")
    tree.write("pipebench/__init__.py", "VERSION = 2\n")
    tree.write(f"{tree.name}/unused.py", "x = 1\n")
    assert tree.digest() == before


def test_comments_docstrings_and_formatting_do_not_matter(tree: Tree) -> None:
    before = tree.digest()
    tree.write("pipebench/algorithms/__init__.py", '"""Shared kernels."""\n')
    tree.replace("pipebench/algorithms/walks.py", "STEP = 2\n", 'STEP = 2  # two\n"""How far."""\n')
    tree.replace("pipebench/algorithms/score.py", "    return", '    """Its time."""\n    return')
    tree.replace(f"{tree.name}/parts.py", "list(problem)", "list(\n        problem,\n    )")
    assert tree.digest() == before


def test_a_kernel_that_is_renamed_or_moved_is_the_same(tree: Tree) -> None:
    before = tree.digest()
    algorithms, planner = tree.folder / "pipebench/algorithms", f"{tree.name}/planner.py"
    (algorithms / "walks.py").rename(algorithms / "strides.py")
    tree.replace(planner, "algorithms.walks import", "algorithms.strides import")
    assert tree.digest() == before
    tree.write("pipebench/algorithms/chains/__init__.py", '"""Chains."""\n')
    (algorithms / "strides.py").rename(algorithms / "chains" / "strides.py")
    tree.replace(planner, "algorithms.strides import", "algorithms.chains.strides import")
    assert tree.digest() == before


def test_a_function_that_moves_to_another_module_is_the_same(tree: Tree) -> None:
    before = tree.digest()
    head, walk = KERNEL.split("\n\n\n")
    tree.write("pipebench/algorithms/walks.py", head)
    tree.write(
        "pipebench/algorithms/strides.py",
        f"import numpy\nfrom pipebench.algorithms.walks import STEP\n\n\n{walk}",
    )
    tree.replace(f"{tree.name}/planner.py", "algorithms.walks import", "algorithms.strides import")
    assert tree.digest() == before
    tree.write("pipebench/algorithms/score.py", f"{SCORE}\n\n{walk}\n\n{head}")
    tree.replace(f"{tree.name}/planner.py", "algorithms.strides import", "algorithms.score import")
    assert tree.digest() == before


def test_another_thing_under_the_same_name_is_another(tree: Tree) -> None:
    """The same definitions, and one of them means another thing to who mentions it."""
    tree.write("pipebench/algorithms/walks.py", f"{KERNEL}\n\nfrom pipebench.algorithms.other import step\n")
    tree.write("pipebench/algorithms/other.py", "STEP = 3\n\n\ndef step():\n    return STEP\n")
    before = tree.digest()
    tree.replace("pipebench/algorithms/walks.py", "STEP = 2", "STEP = 3")
    tree.replace("pipebench/algorithms/other.py", "STEP = 3", "STEP = 2")
    assert tree.digest() != before
    tree.replace("pipebench/algorithms/walks.py", "STEP = 3", "STEP = 2")
    tree.replace("pipebench/algorithms/other.py", "STEP = 2", "STEP = 3")
    assert tree.digest() == before
    tree.replace("pipebench/algorithms/walks.py", "import numpy\n", "import scipy as numpy\n")
    assert tree.digest() != before


def test_other_names_of_the_host_are_other_code(tree: Tree) -> None:
    before = tree.digest()
    tree.replace("pipebench/algorithms/score.py", "import CostModel", "import RoughModel as CostModel")
    assert tree.digest() != before


def test_the_order_of_statements_that_run_matters_and_that_of_definitions_does_not(tree: Tree) -> None:
    tree.write(f"{tree.name}/parts.py", "def cut(p):\n    return p\n\n\nA = [1]\nA.append(2)\nA.append(3)\n")
    before = tree.digest()
    tree.write(f"{tree.name}/parts.py", "A = [1]\n\n\ndef cut(p):\n    return p\n\n\nA.append(2)\nA.append(3)\n")
    assert tree.digest() == before
    tree.write(f"{tree.name}/parts.py", "A = [1]\n\n\ndef cut(p):\n    return p\n\n\nA.append(3)\nA.append(2)\n")
    assert tree.digest() != before


def test_relative_imports_and_modules_run_by_name_are_followed(tree: Tree) -> None:
    tree.write(f"{tree.name}/planner.py", "from .deep import kernel\nfrom . import parts\ndef plan(): ...\n")
    tree.write(f"{tree.name}/deep/__init__.py", "")
    tree.write(f"{tree.name}/deep/kernel.py", f'WORKER = "{tree.name}.deep.worker"\n')
    tree.write(f"{tree.name}/deep/worker.py", "from ..rival import plan\n")
    seen = {tree.digest()}
    for path in ("deep/__init__.py", "deep/worker.py", "rival.py", "parts.py", "__init__.py"):
        tree.write(f"{tree.name}/{path}", tree.read(f"{tree.name}/{path}") + f"edited = {path!r}\n")
        seen.add(tree.digest())
    assert len(seen) == 6


def test_all_of_a_package_counts_where_names_of_modules_are_computed(tree: Tree) -> None:
    tree.replace(f"{tree.name}/parts.py", "def cut", "from importlib import import_module\n\n\ndef cut")
    before = tree.digest()
    tree.replace(f"{tree.name}/rival.py", "return problem", "return None")
    assert tree.digest() != before


def test_packages_that_are_imported_are_named(tree: Tree) -> None:
    tree.replace(f"{tree.name}/parts.py", "return", "import highspy.core\n    return")
    code = component_code(f"{tree.name}.planner:plan")
    assert code.imports == {"numpy", "highspy"}


def test_what_only_a_type_checker_sees_does_not_matter(tree: Tree) -> None:
    before = python_code(b"x = 1\n").definitions
    assert python_code(b"if TYPE_CHECKING:\n    from a import b\nx = 1\n").definitions == before


def test_each_planner_that_ships_has_code_of_its_own_or_shares_its_module() -> None:
    loads = {each.component.load for each in Host().slot("planners").values()}
    codes = {load: component_code(load) for load in loads}
    modules = {load.partition(":")[0] for load in loads}
    assert len({code.digest for code in codes.values()}) == len(modules)
    assert "highspy" in codes["pipebench_madpipe.planner:plan"].imports
    assert "highspy" not in codes["pipebench_pipedream.planner:plan"].imports
