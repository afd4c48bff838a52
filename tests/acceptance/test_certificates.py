"""Every plan of the quick suite has a certificate, in both regimes, with the figures of its row."""

import json
from pathlib import Path

import pytest

from pipebench.bench.store import open_results
from tests.cli.command_line import CommandLine


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_every_plan_of_the_quick_suite(pipebench: CommandLine, tmp_path: Path) -> None:
    store, folder = str(tmp_path / "store"), tmp_path / "proofs"
    assert pipebench("compare", "--suite", "quick", "--out", store).code == 0
    assert pipebench("certify", store, "-o", str(folder)).code == 0
    rows = {row.key[:12]: row for row in open_results(store).rows if row.plan_id}
    assert {row.regime for row in rows.values()} == {"sync", "async"}
    done = pipebench("certify", "--check", str(folder), "--against", store, "--json")
    assert done.code == 0, done.out
    told = {Path(each["file"]).stem: each for each in json.loads(done.out)["certificates"]}
    assert set(told) == set(rows)
    for key, row in rows.items():
        assert (told[key]["time_ns"] / 1e9, told[key]["bound_ns"] / 1e9) == (row.simulated_s, row.bound_s)
