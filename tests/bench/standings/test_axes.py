"""The axes on which problems differ, and which of them span a grid."""

from typing import Any

from pipebench.bench.standings.axes import crossed_pairs, problem_axes
from pipebench.domain.row import Row
from tests.report.rows import row


def of_grid(number: int, workload: str, **fields: Any) -> Row:
    """A row of the problem with that number."""
    return row("a", workload=workload, workload_id=str(number), **fields)


def test_axes_are_what_differs_in_the_order_of_figures_and_not_of_letters() -> None:
    rows = [
        of_grid(
            number,
            f"resnet50 devices={devices} memory={memory}GB bandwidth={bandwidth}GB/s",
            devices=devices,
            device_memory_bytes=memory * 10**9,
        )
        for number, (devices, memory, bandwidth) in enumerate(
            (devices, memory, bandwidth) for devices in (8, 16) for memory in (12, 4) for bandwidth in (24, 3)
        )
    ]
    axes = {axis.name: axis for axis in problem_axes(rows)}
    assert {name: axis.values for name, axis in axes.items()} == {
        "devices": ("8", "16"),
        "device memory": ("4.00 GB", "12.0 GB"),
        "bandwidth": ("3GB/s", "24GB/s"),
    }
    assert [axes["device memory"].of_problem[str(number)] for number in range(8)] == [1, 1, 0, 0, 1, 1, 0, 0]


def test_rows_of_one_problem_in_two_regimes_are_one_problem() -> None:
    rows = [row("a", regime=regime, problem_id=regime) for regime in ("sync", "async")]
    assert problem_axes(rows) == ()


def test_models_outside_of_a_grid_are_an_axis_and_what_differs_with_them_is_none() -> None:
    rows = [
        of_grid(number, "", model=model, profile=profile, device_memory_bytes=memory, mini_batch=batch)
        for number, (model, profile, memory, batch) in enumerate(
            (
                ("mmt", "mmt", 16 * 10**9, 64),
                ("mmt[branches=8]", "mmt", 11 * 10**9, 128),
                ("llm", "llm", 80 * 10**9, 64),
            )
        )
    ]
    assert [(axis.name, axis.values) for axis in problem_axes(rows)] == [
        ("model", ("mmt", "mmt[branches=8]", "llm")),
        ("mini-batch", ("64", "128")),
    ]


def test_a_name_with_an_equals_sign_is_a_model() -> None:
    rows = [of_grid(n, f"mmt[branches={n}] micro_batch=4", model=f"mmt[branches={n}]") for n in (2, 8)]
    assert [(axis.name, axis.values) for axis in problem_axes(rows)] == [
        ("model", ("mmt[branches=2]", "mmt[branches=8]"))
    ]


def test_a_key_that_some_problems_lack_says_so() -> None:
    rows = [of_grid(0, "a micro_batch=8"), of_grid(1, "a micro_batch=4"), of_grid(2, "a")]
    axes = [axis for axis in problem_axes(rows) if axis.name == "micro-batch"]
    assert [axis.values for axis in axes] == [("8", "4", "-")]


def test_a_grid_takes_two_axes_of_which_neither_follows_from_the_other() -> None:
    crossed = [of_grid(4 * d + b, "", devices=d, mini_batch=b) for d in (1, 2, 3) for b in (1, 2)]
    ((down, across),) = crossed_pairs(problem_axes(crossed))
    assert (down.name, across.name) == ("devices", "mini-batch")
    listed = [of_grid(d, "", devices=d, mini_batch=d % 2) for d in (1, 2, 3)]
    assert len(problem_axes(listed)) == 2
    assert crossed_pairs(problem_axes(listed)) == ()
