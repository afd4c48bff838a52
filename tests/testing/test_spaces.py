"""The best of a space by trying all of it, against the sums of a chain whose transfers are free."""

from itertools import combinations, pairwise

from msgspec.structs import replace

from pipebench.bench.services import HostServices
from pipebench.hooks.manager import Host
from pipebench.testing.cases import problem
from pipebench.testing.planners.optimality import SPACES, best_seconds, space_of

US = (300, 500, 200, 700)


def test_without_transfers_the_period_is_the_longest_stage() -> None:
    """Two devices, eight micro-batches of one sample: the best split of forwards and backwards together."""
    periodic, _ = SPACES
    given = problem("free", "async", 2, US, [(op, op + 1, 0) for op in range(3)], sizes=(1,))
    best = best_seconds(HostServices(Host()), given, periodic)
    splits = [max(sum(US[a:b]) for a, b in pairwise((0, cut, 4))) for (cut,) in combinations(range(1, 4), 1)]
    assert best == 8 * 3 * min(splits) / 1e6


def test_one_device_runs_everything() -> None:
    _, flushing = SPACES
    given = problem("alone", "sync", 1, US, [(op, op + 1, 10_000) for op in range(3)], sizes=(1, 2))
    assert best_seconds(HostServices(Host()), given, flushing) == 8 * 3 * sum(US) / 1e6


def test_where_nothing_fits_there_is_no_best() -> None:
    _, flushing = SPACES
    given = problem("starved", "sync", 2, US, [], memory_bytes=10)
    assert best_seconds(HostServices(Host()), given, flushing) is None


def test_the_pinned_micro_batch_is_the_only_one() -> None:
    _, flushing = SPACES
    given = problem("pinned", "sync", 2, US, [(op, op + 1, 0) for op in range(3)], sizes=(1, 2, 4))
    free = best_seconds(HostServices(Host()), given, flushing)
    pinned = replace(given, pins=replace(given.pins, micro_batch=4))
    held = best_seconds(HostServices(Host()), pinned, flushing)
    assert free is not None
    assert held is not None
    assert held > free


def test_a_scope_names_a_space_with_more_conditions_behind_commas() -> None:
    periodic, flushing = SPACES
    assert space_of("contiguous, one micro-batch size, 1F1B*") == periodic
    assert space_of("contiguous, one micro-batch size, 1F1B*, consecutive devices") == periodic
    assert space_of("contiguous, one micro-batch size, 1F1B") == flushing
    assert space_of("contiguous, one micro-batch size, any periodic order") is None
    assert space_of("") is None
