"""Under which costs cells are measured, in words."""

from typing import Any

from pipebench.costs.version import MODEL_VERSION
from pipebench.domain.artefact import Cell
from pipebench.report.claims.costs import cost_lines

SCORED = f"plans scored by the suite's own simulation, cost model {MODEL_VERSION}"


def cell(**fields: Any) -> Cell:
    given: dict[str, Any] = {"at": {}, "planner": "p", "cluster": "flat", "devices": 4, "optimizer": "sgd"}
    return Cell(**given | fields)


def test_models_are_told_with_the_profiler_that_prices_them() -> None:
    cells = [cell(model="bert[layers=4]", profiler="analytic"), cell(model="t", profiler="analytic", devices=8)]
    assert cost_lines(cells) == [
        "models bert[layers=4], t, profiled by `analytic`",
        "cluster flat, 4 to 8 devices, optimizer sgd",
        SCORED,
    ]


def test_profiles_are_told_with_what_is_done_to_them() -> None:
    cells = [cell(profile=f"net{n}", input_bytes=12e6, chain=True, memory="4GB") for n in range(8)]
    assert cost_lines(cells) == [
        "profiles net0, net1, net2, net3, net4, net5 and 2 more, scaled to inputs of 12.0 MB a sample, "
        "operators joined to the layers of a chain",
        "cluster flat, 4 devices, memory 4GB, optimizer sgd",
        SCORED,
    ]


def test_without_cells_nothing_is_told() -> None:
    assert cost_lines([]) == []
