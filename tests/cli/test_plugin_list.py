"""pipebench plugin list and doctor, with plugins that are well and plugins that are not."""

import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.hooks.distributions import GOOD, install

Install = Callable[[str, str], Path]
NAMED = GOOD.replace("{name}", "named")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    monkeypatch.syspath_prepend(tmp_path)

    def put(distribution: str, source: str) -> Path:
        monkeypatch.delitem(sys.modules, distribution.replace("-", "_"), raising=False)
        install(tmp_path, distribution, source)
        return tmp_path / f"{distribution.replace('-', '_')}-1.2.dist-info" / "METADATA"

    return put


def test_all_that_ship_are_loaded_and_light(pipebench: CommandLine) -> None:
    done = pipebench("plugin", "list", "--json")
    listed = {entry["entry_point"]: entry for entry in json.loads(done.out)}
    assert {"madpipe", "models", "simulate"} <= set(listed)
    shipped = [entry for entry in listed.values() if entry["distribution"] == "pipebench"]
    for entry in shipped:
        assert (entry["state"], entry["api"], entry["heavy"], entry["troubles"]) == ("loaded", 1, [], [])
        assert entry["slots"]
    assert listed["madpipe"]["slots"]["schedulers"] == ["periodic-bnb", "periodic-ilp"]


def test_each_state_is_told(pipebench: CommandLine, installed: Install) -> None:
    installed("good-one", NAMED)
    installed("newer-one", NAMED.replace("API = 1", "API = 7"))
    installed("broken-one", "import no_such_module_anywhere")
    installed("clashing-one", GOOD.replace("{name}", "madpipe"))
    done = pipebench("plugin", "list")
    assert done.code == 0
    rows = {line.split()[0]: line.split() for line in done.out.splitlines()}
    assert rows["good_one"][1:5] == ["good-one", "1.2", "1", "loaded"]
    assert rows["newer_one"][3:6] == ["7", "left", "out"]
    assert rows["broken_one"][3:6] == ["-", "left", "out"]
    assert rows["clashing_one"][3:5] == ["1", "partly"]
    assert rows["good_one"][-2:] == ["1", "planner"]
    assert done.err.count("warning: ") == 3


def test_what_an_import_costs_is_laid_at_the_right_door(
    pipebench: CommandLine, installed: Install, tmp_path: Path
) -> None:
    (tmp_path / "slow_helper.py").write_text("x = sum(range(3_000_000))")
    installed("a-slow-one", "import slow_helper\n" + NAMED)
    installed("b-quick-one", GOOD.replace("{name}", "quick"))
    sys.modules.pop("slow_helper", None)
    listed = {entry["entry_point"]: entry for entry in json.loads(pipebench("plugin", "list", "--json").out)}
    assert listed["a_slow_one"]["import_cpu_s"] > 5 * listed["b_quick_one"]["import_cpu_s"]
    assert listed["a_slow_one"]["modules"] == listed["b_quick_one"]["modules"] + 1


def ailments(pipebench: CommandLine) -> dict[str, tuple[str, str]]:
    done = pipebench("plugin", "doctor", "--json")
    found = json.loads(done.out)["ailments"]
    assert done.code == (1 if found else 0)
    return {each["plugin"]: (each["what"], each["remedy"]) for each in found}


def put_all(installed: Install, sources: Iterable[str]) -> list[str]:
    """Plugins sick-0, sick-1, … of sources that say `sick_one`, each with its own planner; how they are named."""
    names = []
    for number, source in enumerate(sources):
        installed(
            f"sick-{number}", source.replace("sick_one", f"sick_{number}").replace('"named"', f'"named{number}"')
        )
        names.append(f"sick-{number} 1.2 (sick_{number})")
    return names


REMEDIES = (
    ("import no_such_module_anywhere", "ModuleNotFoundError", "pip install no_such_module_anywhere"),
    ("import sick_one.part", "ModuleNotFoundError", "pip install --force-reinstall sick-one"),
    ("raise RuntimeError('no licence')", "no licence", "pip install --upgrade sick-one"),
    (NAMED.replace("API = 1", "API = 7"), "hook API 7", "pip install --upgrade pipebench"),
    (NAMED.replace("API = 1", "API = 0"), "hook API 0", "pip install --upgrade sick-one"),
    ("x = 1", "states no PIPEBENCH_API", "pip install --upgrade sick-one"),
    (GOOD.replace("{name}", "madpipe"), "already provided by pipebench", "pip uninstall sick-one"),
    (NAMED.replace("pipebench_planners", "pipebench_planers"), "no hook", "pip install --upgrade sick-one"),
    ("import pandas\n" + NAMED, "imports pandas in every command", "pip install --upgrade sick-one"),
    (NAMED.replace("@hookimpl\n", ""), "pipebench_planners is no hook: it", "pip install --upgrade sick-one"),
    ("import time; time.sleep(1.1)\n" + NAMED, "takes 1.", "pip install --upgrade sick-one"),
)
"""What is wrong with a plugin, the words that say so, and what its user does."""
AUTHORS = (
    ("import no_such_module_anywhere", "name the distribution of no_such_module_anywhere in the dependencies"),
    ("import sick_one.part", ""),
    ("x = 1", "write PIPEBENCH_API = 1 in the module sick_one"),
    (NAMED.replace("API = 1", "API = 7"), ""),
    (GOOD.replace("{name}", "madpipe"), "give it another name"),
    (GOOD.replace("{name}", "Bad Name!"), "correct it in the module sick_one"),
    (
        NAMED.replace("pipebench_planners", "pipebench_planers"),
        "rename it in the module sick_one: did you mean 'pipebench_planners'?",
    ),
    ("print('hello')\n" + NAMED, "take the print out of what sick_one runs when it is imported"),
    ("import os; os.chdir('/')\n" + NAMED, "take the change out of what sick_one runs when it is imported"),
    (
        NAMED.replace("@hookimpl\n", ""),
        "write @hookimpl (from pipebench.hooks) above it in the module sick_one",
    ),
    (NAMED.replace("API = 1", "API = 0"), "write it for hook API 1"),
    (NAMED.replace("API = 1", "API = '1'"), "write PIPEBENCH_API = 1 in the module sick_one"),
    ("import time; time.sleep(1.1)\n" + NAMED, "do the work in the module that `load` names"),
    (NAMED.replace(":plan", ":plam"), "correct `load` of the planner named, or the module that it names"),
)
"""What is wrong with a plugin, and what its author does."""


def test_the_doctor_names_what_mends_it(
    pipebench: CommandLine, installed: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    (tmp_path / "pandas.py").touch()
    names = put_all(installed, (source for source, _, _ in REMEDIES))
    found = {name: told for name, told in ailments(pipebench).items() if "sick" in name}
    assert sorted(found) == sorted(names)
    for number, (name, (_, what, remedy)) in enumerate(zip(names, REMEDIES, strict=True)):
        assert what in found[name][0]
        assert found[name][1] == remedy.replace("sick-one", f"sick-{number}")


def test_the_doctor_says_what_its_author_does(pipebench: CommandLine, installed: Install) -> None:
    put_all(installed, (source for source, _ in AUTHORS))
    told = json.loads(pipebench("plugin", "doctor", "--json").out)["ailments"]
    found = {each["plugin"].split()[0].rstrip(":"): each["author"] for each in told if "sick" in each["plugin"]}
    assert len(found) == len(AUTHORS)
    for number, (_, author) in enumerate(AUTHORS):
        expected = author.replace("sick_one", f"sick_{number}").replace("planner named", f"planner named{number}")
        assert found[f"sick-{number}"].startswith(expected)
        assert bool(found[f"sick-{number}"]) == bool(author)


def test_a_plugin_that_waits_while_it_is_loaded_shows_for_how_long(
    pipebench: CommandLine, installed: Install
) -> None:
    installed("a-waiting-one", "import time; time.sleep(1.1)\n" + NAMED)
    rows = {line.split()[0]: line for line in pipebench("plugin", "list").out.splitlines()}
    assert re.search(r" ms, 1\.\d+ s of wall time ", rows["a_waiting_one"])
    assert "wall" not in rows["madpipe"]


def test_a_check_of_a_component_that_is_left_out_says_why(pipebench: CommandLine, installed: Install) -> None:
    installed("sick-one", NAMED.replace(":plan", "/plan"))
    done = pipebench("plugin", "check", "named")
    assert done.code == 3
    assert "could not be loaded: load is 'sick_one/plan', not 'package.module:attribute'" in done.err


def test_a_check_of_a_plugin_without_hooks_says_what_a_hook_is(pipebench: CommandLine, installed: Install) -> None:
    installed("sick-one", NAMED.replace("@hookimpl\n", ""))
    done = pipebench("plugin", "check", "sick-one")
    assert done.code == 3
    assert "pipebench_planners is no hook: it is not marked" in done.err
    installed("empty-one", "PIPEBENCH_API = 1")
    assert "marked with @hookimpl" in pipebench("plugin", "check", "empty-one").err


def test_the_doctor_prints_each_fault_once(pipebench: CommandLine, installed: Install) -> None:
    installed("sick-one", GOOD.replace("{name}", "madpipe"))
    done = pipebench("plugin", "doctor")
    lines = [
        "sick-one 1.2 (sick_one): planner 'madpipe' is left out: the name is already provided by pipebench ",
        "    pip uninstall sick-one",
        "    as its author: give it another name",
    ]
    told = done.out.splitlines()[: len(lines) + 1]
    assert all(map(str.startswith, told, lines)), told
    assert told[-1].startswith("declared by ")
    assert done.out.endswith("1 wrong\n")


def test_work_that_cannot_be_loaded_is_found(pipebench: CommandLine, installed: Install) -> None:
    installed("sick-one", NAMED.replace('load="{module}:plan"', 'load="sick_one:plam"'))
    found = ailments(pipebench)["sick-one: planner named"]
    assert "AttributeError" in found[0]
    assert found[1] == "pip install --upgrade sick-one"


def test_missing_and_old_requirements(pipebench: CommandLine, installed: Install) -> None:
    metadata = installed("sick-one", NAMED)
    with metadata.open("a") as file:
        file.write("Requires-Dist: no-such-thing>=2\nRequires-Dist: click>=99\nRequires-Dist: msgspec\n")
        file.write("Requires-Dist: other; extra == 'test'\n")
    done = pipebench("plugin", "doctor")
    assert done.code == 1
    assert "sick-one: needs no-such-thing>=2: it is not installed\n    pip install 'no-such-thing>=2'" in done.out
    assert "sick-one: needs click>=99: 8." in done.out
    assert "other" not in done.out
    assert "2 wrong" in done.out


def test_requirements_are_read_as_pip_reads_them(pipebench: CommandLine, installed: Install) -> None:
    metadata = installed("sick-one", NAMED)
    lines = (
        "MsgSpec<0.1",
        "click!=0.0.1,>=8",
        "no-such-thing; python_version < '3'",
        "no-such-other (>=2); python_version >= '3'",
        "rich[jupyter]>=1",
        "not a requirement !",
    )
    with metadata.open("a") as file:
        file.writelines(f"Requires-Dist: {line}\n" for line in lines)
    done = pipebench("plugin", "doctor", "--json")
    needs = [each["what"] for each in json.loads(done.out)["ailments"] if each["plugin"] == "sick-one"]
    assert [need.partition(": ")[0] for need in needs] == ["needs MsgSpec<0.1", "needs no-such-other>=2"]


def test_a_plugin_that_needs_nothing_mended(pipebench: CommandLine, installed: Install) -> None:
    installed("good-one", NAMED)
    assert not any("good" in name for name in ailments(pipebench))
