"""Kernels of several planners are compiled before the first trial, each once for an environment."""

import fcntl
import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from pipebench.bench.cage.installed import installed_host
from pipebench.bench.components import Ready, ready_planner
from pipebench.bench.searches import compilation
from pipebench.bench.searches.compilation import MARKS, TURN, compile_side_by_side
from pipebench.bench.searches.isolated import SearchLimits, compile_part, timed_search
from pipebench.bench.searches.isolation.client import isolation, server_of_its_own
from pipebench.bench.searches.request import Searcher, SearchRequest
from pipebench.bench.searches.toys import toys
from pipebench.domain.problem import RegimeMode
from pipebench.hooks.descriptors import Planner
from pipebench.hooks.syntax import parse_reference
from pipebench.system.kernel_folder import kernel_folder

HOST = installed_host()


@pytest.fixture(autouse=True, scope="module")
def nothing_compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment in which nobody has compiled anything of a plugin before these tests, and its cache.

    What kernels of the suite itself there are already is there as well.
    """
    cache, kept = tmp_path_factory.mktemp("cache"), kernel_folder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.delenv("NUMBA_CACHE_DIR", raising=False)
        copy = kernel_folder()
        if kept is not None and copy is not None:
            shutil.copytree(kept, copy, ignore=shutil.ignore_patterns("pipebench_*"), dirs_exist_ok=True)
        yield cache


def search(name: str, mode: RegimeMode = "sync") -> tuple[Ready, Searcher]:
    return ready_planner(HOST, parse_reference(name)), Searcher(planner=name, regime=mode)


def compiled(*searches: tuple[Ready, Searcher]) -> list[list[str]]:
    told: list[list[str]] = []
    with server_of_its_own():
        compile_side_by_side(HOST, searches, told.append)
    return told


def test_several_planners_are_compiled_once_and_their_trials_find_the_kernels() -> None:
    chain, hybrid = search("alpa-inter"), search("gpipe-hybrid")
    assert compiled(chain, hybrid) == [["alpa-inter", "gpipe-hybrid"]]
    assert compiled(chain, hybrid) == []
    request = SearchRequest(problem=toys("sync")[0])
    with server_of_its_own():
        found = timed_search(HOST, *chain, request, SearchLimits(timeout_s=60.0, repeat=0))
    assert found.report.status == "found"
    assert found.compile_s == 0.0


def test_a_part_of_the_kernels_is_compiled_by_itself_and_kept(nothing_compiled: Path) -> None:
    planner, searcher = search("pipedream[replicas=split]")
    (part,) = planner.component.kernel_parts if isinstance(planner.component, Planner) else ()
    with server_of_its_own():
        compile_part(HOST, planner, part)
    kept = {file.name.partition("-")[0] for file in nothing_compiled.rglob("*.nbi")}
    assert {"suffix_dp.fill_bottlenecks", "suffix_dp.fill_fewest"} <= kept
    assert compiled((planner, searcher)) == [["pipedream"]]


def test_a_part_that_fails_is_compiled_with_the_rest() -> None:
    with server_of_its_own():
        compile_part(HOST, search("pipedream")[0], "pipebench_pipedream.suffix_dp:missing")


def test_a_file_compiles_in_its_trial_and_others_once(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def plan(problem, context):\n    raise SystemExit\n")
    one, other = search("uniform"), search("data-parallel")
    assert compiled(one, search(str(file))) == [["uniform"]]
    assert compiled(one, other) == [["data-parallel"]]
    assert compiled(one, other, search(str(file))) == []


def test_commands_that_begin_together_compile_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one has seen that nothing is compiled yet; while it waits the first one compiles."""
    done: list[str] = []
    monkeypatch.setattr(
        compilation, "compile_kernels", lambda host, planner, _: done.append(planner.component.name)
    )
    both = [search("layout"), search("tensor-parallel")]
    folder = kernel_folder(MARKS)
    assert folder is not None
    seen = Event()
    with open(folder / TURN, "ab") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        second = Thread(target=compile_side_by_side, args=(HOST, both, lambda _: seen.set()))
        second.start()
        assert seen.wait(60)
        second.join(0.3)
        assert second.is_alive()
        assert not done
        with monkeypatch.context() as patch:
            patch.setattr(compilation, "acquire", lambda *_: True)
            compile_side_by_side(HOST, both[:1], lambda _: None)
        assert done == ["layout"]
    second.join(60)
    assert done == ["layout", "tensor-parallel"]


def test_a_thread_of_its_own_server_leaves_the_process_its_server() -> None:
    before = isolation()
    with server_of_its_own():
        assert isolation() is not before
        assert isolation().folders.own != before.folders.own
    assert isolation() is before
