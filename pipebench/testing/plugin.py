"""The pytest plugin: one test for each check of the kit, and the totals at the end.

Load it with `pytest_plugins = ["pipebench.testing.plugin"]` in conftest.py, or `-p pipebench.testing.plugin`. It
is no entry point on purpose: pytest rewrites every module of a distribution that has one, kernels included, in
every environment where pipebench happens to be installed.

    @pytest.mark.pipebench("mine")
    def test_conformance(pipebench_check):
        pipebench_check()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pipebench.testing.verdicts import Check, CheckOutcome

MARK, FIXTURE = "pipebench", "pipebench_check"
OUTCOMES: pytest.StashKey[list[CheckOutcome]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    """The mark, and room for what the checks come to."""
    config.addinivalue_line(
        "markers", "pipebench(name): run the conformance kit on a plugin, a component or a file"
    )
    config.stash[OUTCOMES] = []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each check of the plugins that the mark names."""
    if FIXTURE not in metafunc.fixturenames:
        return
    from pipebench.bench.cage.installed import installed_host
    from pipebench.domain.errors import PipebenchError
    from pipebench.testing.kit import checks

    names = [name for mark in metafunc.definition.iter_markers(MARK) for name in mark.args]
    if not names:
        raise pytest.UsageError(f'{metafunc.function.__name__}: say which plugin: @pytest.mark.{MARK}("mine")')
    host = installed_host()
    try:
        found = [each for name in names for each in checks(host, name)]
    except PipebenchError as error:
        raise pytest.UsageError(f"pipebench: {error}") from None
    metafunc.parametrize(FIXTURE, found, indirect=True, ids=[str(check) for check, _ in found])


@pytest.fixture(name=FIXTURE)
def pipebench_check(request: pytest.FixtureRequest) -> Callable[[], None]:
    """Runs one check: passes, is skipped with the reason of a waiver, or fails with what is wrong."""
    check, waived = request.param
    return lambda: _run(request.config, check, waived)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The totals: a green run with few checks is seen to be one."""
    outcomes = config.stash[OUTCOMES]
    if not outcomes:
        return
    from pipebench.testing.verdicts import ConformanceReport

    report = ConformanceReport(target="", outcomes=tuple(outcomes))
    terminalreporter.write_line(f"pipebench conformance: {report.totals}")
    for outcome in outcomes:
        if outcome.status == "waived":
            terminalreporter.write_line(f"  waived {outcome.component}: {outcome.check}: {outcome.reason}")


def _run(config: pytest.Config, check: Check, waived: str | None) -> None:
    from pipebench.testing.verdicts import outcome_of

    outcome = outcome_of(check, waived)
    config.stash[OUTCOMES].append(outcome)
    if outcome.status == "waived":
        pytest.skip(outcome.reason)
    if outcome.status == "failed":
        pytest.fail(f"{outcome.component}: {outcome.check}: {outcome.reason}", pytrace=False)
