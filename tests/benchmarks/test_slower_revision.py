"""A planner made a fifth slower on purpose (more work, no sleep) is flagged against its revision, itself not."""

from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.cli.main import run
from tests.benchmarks.timed import only_when_measured
from tests.track.against import made_repository

AGAINST = ("track", "check", "--against", "HEAD", "--planners", "mine", "--profile", "mmt", "--devices", "1")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("steps", "code"), [(100, 0), (120, 1)])
def test_against_the_last_revision(
    benchmark: BenchmarkFixture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    steps: int,
    code: int,
) -> None:
    only_when_measured(benchmark)
    top = made_repository.repository(tmp_path / "repository")
    planner = top / "mine" / "planner.py"
    planner.write_text(planner.read_text().replace("STEPS = 100", f"STEPS = {steps}"))
    monkeypatch.chdir(top)
    assert benchmark.pedantic(run, args=(list(AGAINST),), rounds=1) == code
    with capsys.disabled():
        print(capsys.readouterr().out)
