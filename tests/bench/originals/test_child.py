"""Programs of others: their time, their output, and what they may not do."""

import sys
import time
from pathlib import Path

import pytest

from pipebench.bench.originals import child
from pipebench.bench.originals.child import ChildRun, own_environment, run_child
from pipebench.bench.searches.isolation.confinement import landlock_version
from pipebench.domain.errors import PipebenchError


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    made = tmp_path / "scratch"
    made.mkdir()
    return made


def ran(scratch: Path, code: str, limit_s: float = 60.0, given: Path | None = None) -> ChildRun:
    return run_child((sys.executable, "-c", code), scratch, own_environment(scratch, {}), limit_s, given)


def test_output_the_last_line_of_errors_and_the_status(scratch: Path) -> None:
    code = "import sys; print('yes'); print('one', file=sys.stderr); print('two\\n', file=sys.stderr); sys.exit(3)"
    done = ran(scratch, code)
    assert (done.output, done.error, done.code, done.stopped) == ("yes\n", "two", 3, False)


def test_cpu_time_is_of_the_process_and_not_of_waiting(scratch: Path) -> None:
    working = "import time\nwhile time.process_time() < 0.5: pass"
    assert ran(scratch, working).cpu_s == pytest.approx(0.5, abs=0.2)
    waiting = ran(scratch, "import time; time.sleep(0.5)")
    assert waiting.wall_s > 0.5
    assert waiting.cpu_s < 0.3


def test_a_program_that_goes_on_is_ended_with_what_it_started(scratch: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(5); open(\"late\", \"w\")'])\n"
        "time.sleep(60)"
    )
    done = ran(scratch, code, limit_s=1.0)
    assert (done.stopped, done.code) == (True, -9)
    time.sleep(5.5)
    assert not (scratch / "late").exists()


@pytest.mark.skipif(landlock_version() == 0, reason="this kernel has no Landlock")
def test_it_writes_in_its_scratch_folder_only(scratch: Path, tmp_path: Path) -> None:
    other = tmp_path / "theirs"
    other.write_text("as it was")
    refused = ran(scratch, f"open({str(other)!r}, 'w')")
    assert refused.code == 1
    assert refused.error.split(":")[0] in ("PermissionError", "OSError")
    assert other.read_text() == "as it was"
    assert ran(scratch, "open('mine', 'w').write('x')").code == 0
    assert (scratch / "mine").read_text() == "x"


def test_secrets_and_the_suites_own_variables_stay_here(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MY_TOKEN", "PIPEBENCH_THING", "PYTHONPATH"):
        monkeypatch.setenv(name, "secret")
    done = ran(scratch, "import os; print(*os.environ)")
    assert not {"MY_TOKEN", "PIPEBENCH_THING", "PYTHONPATH"} & set(done.output.split())


def test_endless_output_is_refused(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "MOST_PRINTED_BYTES", 1000)
    with pytest.raises(PipebenchError, match="printed more than"):
        ran(scratch, "print('x' * 2000)")


def test_standard_input_is_a_file(scratch: Path, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text("from a file")
    assert ran(scratch, "print(input())", given=given).output == "from a file\n"


def test_no_such_program(scratch: Path) -> None:
    with pytest.raises(PipebenchError, match="cannot be started: No such file"):
        run_child(("/no/such/program",), scratch, {}, 1.0)
