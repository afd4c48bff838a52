"""Strict reading of torch's schedule files."""

import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_SCHEDULE_CELLS
from pipebench.formats.frameworks.torch_schedule import (
    Sound,
    read_cells,
    read_torch_schedule,
    sound,
    write_cells,
)
from tests.shared_data import shared_data


def read(text: str | bytes) -> Sound:
    data = text.encode() if isinstance(text, str) else text
    return sound(read_cells(data, "order.csv"), "order.csv")


@pytest.mark.parametrize(
    ("name", "stages", "count", "peaks"),
    [
        ("GPipe_pp4_mb8_v1.csv", 4, 8, (8, 8, 8, 8)),
        ("Interleaved1F1B_pp4_mb8_v2.csv", 8, 8, (11, 9, 7, 5)),
        ("InterleavedZeroBubble_pp4_mb8_v2.csv", 8, 8, (8, 8, 8, 8)),
        ("LoopedBFS_pp4_mb8_v2.csv", 8, 8, (16, 16, 16, 16)),
        ("ZBVZeroBubble_pp4_mb8_v2.csv", 8, 8, (8, 8, 8, 8)),
        ("DualPipeV_pp4_mb10_v2.csv", 8, 10, (9, 9, 9, 9)),
    ],
)
def test_torchs_own_schedules(name: str, stages: int, count: int, peaks: tuple[int, ...]) -> None:
    found = read_torch_schedule(str(shared_data(f"torch_schedules/{name}")))
    assert (len(found.rank_of), found.micro_batches) == (stages, count)
    assert found.peaks == peaks
    assert sound(read_cells(write_cells(found.ranks), name), name).peaks == peaks


def test_uneven_stages_by_rank_are_legal() -> None:
    assert read("0F0,2F0,2B0,0B0\n1F0,,,1B0\n").rank_of == (0, 1, 0)


def test_torchs_1f1b_order_of_the_last_rank_is_refused() -> None:
    """torch 2.10's Schedule1F1B._get_pipeline_order counts the last rank's forwards from 1."""
    with pytest.raises(PipebenchError, match="stage 0, micro-batch 2: no F"):
        read("0F0,0F1,0B0,0B1\n1F1,1B0,1F2,1B1\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"\xef\xbb\xbf0F0,0B0\n", "byte-order mark"),
        (b"\xff\xfe0\x00F\x00", "byte-order mark"),
        ("0F0junk,0B0\n", "rank 0, step 0: '0F0junk' is no task"),
        ("0F0,0B1.5\n", "step 1: '0B1.5'"),
        ("0F0,2BW0\n", "'2BW0' is no task"),
        ("0F0, 0B0\n", "' 0B0' is no task"),
        ("0F,0B0\n", "'0F' is no task"),
        ("0F0,0SEND_F0,0B0\n", "is a communication"),
        ("(0F0;0B0)OVERLAP\n", "is no task"),
        ("0F0,0B0\n\n1F0,1B0\n", "rank 1 has no tasks"),
        ("0F0,0B0\n,,\n", "rank 1 has no tasks"),
        ("stage,op\n", "is no task"),
        ("0F0,é\n", "is not ASCII"),
        ("0F0,0F0,0B0\n", "again at step 1"),
        ("0F0,0B0\n0F1,0B1\n", "runs on rank 0 too"),
        ("0F0,0B0,2F0,2B0\n", "stage 1 runs nowhere"),
        ("0B0,0F0\n", r"rank 0, step 0 \(B of stage 0, micro-batch 0\) comes before rank 0, step 1"),
        ("0F0,0W0,0I0\n", "W of stage 0, micro-batch 0.* comes before"),
        ("0F0,0I0\n", "no W"),
        ("0F0,0B0,0I0,0W0\n", "B beside I or W"),
        ("0F0\n", "no B, or I and W"),
        ("0F0,0B0,0B1\n", "there are 1 micro-batches"),
        ("0B0\n", "no forward"),
        ("0F0,0F999999,0B0\n", "micro-batches up to 999999"),
    ],
)
def test_refused(text: str | bytes, reason: str) -> None:
    with pytest.raises(PipebenchError, match=reason):
        read(text)


def test_a_deadlock_is_named_with_all_of_its_cycle() -> None:
    with pytest.raises(PipebenchError) as caught:
        read("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n")
    assert caught.value.message == (
        "order.csv: deadlock: rank 0, step 1 (B of stage 0, micro-batch 0) waits for rank 1, step 3 (B of stage "
        "1, micro-batch 0); rank 1, step 0 (F of stage 1, micro-batch 1) waits for rank 0, step 2 (F of stage 0, "
        "micro-batch 1)"
    )


def test_the_number_of_cells_is_bounded() -> None:
    with pytest.raises(PipebenchError, match="10000000 cells"):
        read_cells(b"0F0," * 9_999_999, "big.csv")
    assert MOST_SCHEDULE_CELLS < 10_000_000
