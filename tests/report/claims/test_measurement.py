"""How rows were measured, in words: each row once, what is not known, what ran beside other work."""

from typing import Any

import pytest

from pipebench.domain.row import Row
from pipebench.report.claims.measurement import measurement
from tests.report.rows import row

AT = {"a": "2026-01-02T23:59:59.000+00:00", "b": "2026-01-03T00:00:00.000+00:00"}


def timed(key: str, elapsed_s: float | None, **fields: Any) -> Row:
    return row("p", key=key, elapsed_s=elapsed_s, **fields)


def test_rows_that_artefacts_share_count_once() -> None:
    found = measurement([timed("a", 40.0), timed("b", 80.0), timed("a", 40.0)], AT)
    assert found.lines == ["date: 2026-01-02 to 2026-01-03", "time: 2 cells took 2 min in all"]


def test_rows_outside_a_store_have_no_key_and_count_each() -> None:
    assert measurement([timed("", 40.0), timed("", 40.0)], {}).took == "2 cells took 80 s in all"


def test_what_older_stores_do_not_know_is_said_and_rows_that_were_never_run_are_not() -> None:
    found = measurement([timed("a", None), timed("b", 2.0), timed("", None, status="unsupported")], AT)
    assert found.took == "3 cells took 2 s in all (not known of 1 of them)"


def test_work_beside_the_run_is_said() -> None:
    found = measurement([timed("a", 1.0, parallel=True), timed("b", 1.0)], {})
    assert "note: 1 of 2 cells ran beside other work: their search times cannot be compared" in found.lines


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        (
            {"cpu": "Intel(R) Xeon(R) Processor @ 2.20GHz", "cpus": "2", "system": "Linux"},
            "2 cores, Intel Xeon, Linux",
        ),
        ({"cpus": "1"}, "1 core"),
        ({"cpu": "Apple M2", "system": "Darwin"}, "Apple M2, Darwin"),
    ],
)
def test_a_machine_is_told_by_its_cores_and_family(environment: dict[str, str], words: str) -> None:
    assert measurement([timed("a", 1.0, environment=environment)], {}).machines == (words,)


def test_versions_are_told() -> None:
    environment = {"pipebench": "1.2", "python": "3.11.9"}
    assert measurement([timed("a", 1.0, environment=environment)], {}).versions == (
        "pipebench 1.2, Python 3.11.9",
    )
