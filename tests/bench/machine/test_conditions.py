"""Who else worked on the machine is said beside a measured run."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from pipebench.bench.machine import environment
from pipebench.bench.machine.environment import Usage, disturbance, usage

BEFORE = Usage(at_s=100.0, all_s=50.0, own_s=7.0)


def test_only_the_work_of_others_disturbs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In 10 s: 4 s of ours and 8 s of others on four cores; then all of it ours."""
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    after = Usage(at_s=110.0, all_s=62.0, own_s=11.0)
    (line,) = disturbance(BEFORE, after)
    assert line.startswith("others used 0.8 of 4 cores during the run")
    assert disturbance(BEFORE, replace(after, own_s=19.0)) == []
    assert disturbance(BEFORE, replace(after, own_s=16.6)) == []
    assert disturbance(BEFORE, replace(after, own_s=16.4))
    assert disturbance(None, after) == disturbance(BEFORE, None) == disturbance(BEFORE, BEFORE) == []


def test_children_count_as_ours() -> None:
    before = usage()
    if before is None:
        pytest.skip("this system does not tell how busy it is")
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], check=True)
    after = usage()
    assert after is not None
    assert after.own_s - before.own_s >= 0.4
    assert after.all_s - before.all_s >= 0.4  # both are counted in ticks


def test_children_that_still_work_count_as_ours_and_so_do_theirs() -> None:
    """An executor's processes live on behind the run, in a child of a child."""
    if usage() is None:
        pytest.skip("this system does not tell how busy it is")
    busy = "import time\nwhile time.process_time() < 0.5: pass\nprint('done', flush=True)\ninput()"
    nested = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {busy!r}]))"
    before = usage()
    with subprocess.Popen(
        [sys.executable, "-c", nested], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "done\n"
        after = usage()
        child.communicate("\n")
    assert before is not None
    assert after is not None
    assert after.own_s - before.own_s >= 0.4


def test_a_short_run_is_not_judged() -> None:
    """Ticks are some milliseconds long."""
    after = replace(BEFORE, at_s=100.1, all_s=50.2)
    assert disturbance(BEFORE, after) == []
    assert disturbance(BEFORE, replace(after, at_s=100.3))


def test_a_system_that_does_not_tell(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(environment, "STAT", tmp_path / "nothing")
    assert usage() is None
    (tmp_path / "nothing").write_text("cpu what\n")
    assert usage() is None
