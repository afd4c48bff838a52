"""Ratios to bounds, and what is looked at."""

from msgspec.structs import replace

from tests.nearness.distances import Distance, certificates, mean, tables
from tests.nearness.problems import TightGraph, apart, problems


def row(
    best_ns: int | None, class_bound_ns: int | None = None, *, kind: str = "work", in_class: bool = True
) -> Distance:
    return Distance("p", "quick", "sync", best_ns, 100, kind, class_bound_ns, in_class)


def test_ratios_are_those_of_plans_that_there_are() -> None:
    assert row(150).of_bound == 1.5
    assert row(None, 100).of_bound is None
    assert (row(150, 120).of_class, row(150, 120, in_class=False).of_class, row(150).of_class) == (
        1.25,
        None,
        None,
    )
    assert mean([1.0, 4.0]) == 2.0


def test_tables_count_problems_without_a_plan_and_split_by_what_binds() -> None:
    made = tables([row(200, 160), row(None), row(800, kind="memory", in_class=False)]).splitlines()
    assert "| quick, sync | 3 | 2 | 0 | 4.000 | 8.00 | 1 | 1.250 | 1.25 |" in made
    assert "| all | 3 | 2 | 0 | 4.000 | 8.00 | 1 | 1.250 | 1.25 |" in made
    assert "| memory | 1 | 1 | 0 | 8.000 | 8.00 | 0 | - | - |" in made
    assert "| work | 2 | 1 | 0 | 2.000 | 2.00 | 1 | 1.250 | 1.25 |" in made


def test_certificates_are_counted_and_slow_checks_told() -> None:
    known = row(200)
    quick, slow = replace(known, certify_s=1.0, check_s=0.9), replace(known, certify_s=11.0, check_s=1.2)
    fair = replace(known, certify_s=13.0, check_s=1.2)
    refused = replace(known, refused="it has no period")
    said = certificates([quick, slow, fair, refused, row(None)])
    assert said.startswith("3 of 4 plans have a certificate that the checker accepts.")
    assert "took 1.20 s at most; in 1 a second and a tenth of `certify` or more. None: it has no period." in said


def test_problems_are_the_same_for_a_seed() -> None:
    first = list(problems(6, 2, 0))
    assert [each.label for each in first] == [each.label for each in problems(6, 2, 0)]
    groups = [each.group for each in first]
    assert (groups.count("chains"), sum(each.startswith("tight") for each in groups)) == (12, 4)
    assert {"quick", "branches", "language models"} <= set(groups)
    assert {each.mode for each in first if isinstance(each, TightGraph)} == {"sync", "async"}
    assert len({each.label for each in first}) == len(first)


def test_a_cell_stands_apart_from_what_is_scarce_in_it() -> None:
    cell, links, memory, both, *others = apart(1, 0)
    assert {each.mode for each in others} == {"sync"}
    assert {"branches", "branches, both free", "language models", "quick"} <= {each.group for each in others}
    assert cell in problems(1, 0, 0)
    assert [each.group for each in (links, memory, both)] == [
        "chains, links free",
        "chains, memory free",
        "chains, both free",
    ]
    assert len({each.label for each in (cell, links, memory, both)}) == 4
    assert (links.spec.memory, memory.spec.bandwidth) == (cell.spec.memory, cell.spec.bandwidth)
    assert (both.spec.memory, both.spec.bandwidth) == (memory.spec.memory, links.spec.bandwidth)
    assert {links.spec.devices, memory.spec.devices, both.spec.devices} == {cell.spec.devices}
