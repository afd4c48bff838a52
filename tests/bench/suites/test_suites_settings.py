"""Planners, regimes and limits: the command line wins, then the suites."""

from pathlib import Path

import pytest

from pipebench.bench.suites import Settings, load_suites, settle
from pipebench.bench.suites.selection import Selection, chosen_suites
from pipebench.domain.errors import PipebenchError
from pipebench.hooks.trust import Trust, UntrustedName
from tests.bench.suite_files import HEAD, workload, write

FULL = """
planners = ["madpipe", "./own.py", "/opt/a.py", "graphpipe,pipedream[order=level]", "cmd:./plan 'a,b',cmd:sh p.py"]
regimes = ["async", "sync"]
schedulers = ["1f1b"]
executors = ["simulate"]
seed = 3
[limits]
timeout_s = 2.5
memory = "4GB"
repeat = 5
"""


def test_what_the_command_line_leaves_open_the_suite_says(tmp_path: Path) -> None:
    suites = load_suites([write(tmp_path, HEAD + FULL + workload())])
    with pytest.raises(UntrustedName, match=r"own\.py.*/opt/a\.py.*program") as refused:
        settle(suites, Settings())
    assert refused.value.code == (
        f"the Python file {tmp_path / 'own.py'} (which cannot be read)",
        "the Python file /opt/a.py (which cannot be read)",
        "the program ./plan 'a,b'",
        "the program sh p.py",
    )
    assert settle(suites, Settings(), Trust(given=True)) == Settings(
        planners=(
            "madpipe",
            str(tmp_path / "own.py"),
            "/opt/a.py",
            "graphpipe",
            "pipedream[order=level]",
            "cmd:./plan 'a,b'",
            "cmd:sh p.py",
        ),
        regimes=("async", "sync"),
        schedulers=("1f1b",),
        executors=("simulate",),
        timeout_s=2.5,
        memory_bytes=4 * 10**9,
        repeat=5,
        seed=3,
    )


def test_the_command_line_wins_field_by_field(tmp_path: Path) -> None:
    suites = load_suites([write(tmp_path, HEAD + FULL + workload())])
    said = Settings(planners=("uniform",), timeout_s=1.0, seed=0)
    settled = settle(suites, said)
    assert (settled.planners, settled.timeout_s, settled.seed) == (("uniform",), 1.0, 0)
    assert (settled.repeat, settled.regimes) == (5, ("async", "sync"))


def test_without_a_suite_nothing_is_added() -> None:
    said = Settings(planners=("uniform",), seed=0)
    assert settle([], said) == said
    assert settle(chosen_suites(Selection(profiles=("mmt",))), said) == said
    assert settle(chosen_suites(Selection()), Settings()) == Settings()


def test_suites_that_differ_need_a_word_from_the_user() -> None:
    suites = load_suites(["quick", "chains", "branches"])
    with pytest.raises(PipebenchError, match=r"chains\.toml and branches\.toml differ in planners \(say it"):
        settle(suites, Settings())
    with pytest.raises(PipebenchError, match="differ in regimes"):
        settle(suites, Settings(planners=("pipedream",)))
    settled = settle(suites, Settings(planners=("pipedream",), regimes=("sync",)))
    assert settled == Settings(planners=("pipedream",), regimes=("sync",))


def test_one_suite_that_says_something_decides_for_all() -> None:
    assert settle(load_suites(["quick", "chains"]), Settings()).planners == ("madpipe", "pipedream")


def test_limits_that_differ_are_named_as_in_the_file(tmp_path: Path) -> None:
    texts = [f"{HEAD.replace('mine', name)}limits.memory = '{name}GB'\n{workload()}" for name in ("3", "4")]
    suites = load_suites([write(tmp_path, text, f"{n}.toml") for n, text in enumerate(texts)])
    with pytest.raises(PipebenchError, match=r"limits\.memory"):
        settle(suites, Settings())
