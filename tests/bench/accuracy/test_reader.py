"""A table of runs is read with its marks, and every error names its row and column."""

import pytest
from msgspec.structs import replace

from pipebench.bench.accuracy.reader import parse_runs, read_runs
from pipebench.bench.accuracy.run import COLUMNS, COUNTS, FIGURES, OPTIONAL, REQUIRED
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import LARGEST_RUNS_BYTES, MOST_LETTERS, MOST_RUNS
from tests.bench.accuracy.tables import SMALL, run, table
from tests.shared_data import shared_data

HEADER = (
    "id model layers hidden heads seq vocab gpus device nodes_gpus tp pp dp cp vpp ep mbs gbs partition "
    "schedule recompute precision framework iter_s samples_s_gpu tokens_s_gpu tflops_gpu mem_gib "
    "predicted_by_source_s source how_read"
)


def test_the_columns_are_these() -> None:
    assert " ".join(COLUMNS) == HEADER
    assert REQUIRED == ("id", "model", "gpus", "device", "iter_s")
    assert set(COUNTS) & set(FIGURES) == set()


def test_values_have_their_types_and_empty_ones_are_none() -> None:
    made = run(mem_gib="30", vpp="")
    assert (made.layers, made.gpus, made.iter_s, made.schedule) == (8, 8, 0.25, "1f1b")
    assert made.vpp is None
    assert made.measured_memory_bytes == 30 * 2**30
    assert run().measured_memory_bytes is None


def test_two_columns_may_be_left_out() -> None:
    assert OPTIONAL == ("ffn", "kv_heads")
    there = SMALL | {"ffn": "4096", "kv_heads": "4?"}
    (made,) = parse_runs(table(there, columns=("kv_heads", *COLUMNS, "ffn")), "runs.csv")
    assert (made.ffn, made.kv_heads, made.inferred) == (4096, 4, ("kv_heads",))
    (one,) = parse_runs(table(there | {"kv_heads": ""}, columns=(*COLUMNS, *OPTIONAL)), "runs.csv")
    assert (one.ffn, one.kv_heads) == (4096, None)
    assert run() == replace(one, ffn=None)
    with pytest.raises(PipebenchError, match=r"row 2, column ffn: '0' is not a whole number from 1"):
        parse_runs(table(there | {"ffn": "0"}, columns=(*COLUMNS, *OPTIONAL)), "runs.csv")


def test_a_mark_of_inference_is_no_part_of_the_value() -> None:
    made = run(precision="fp16?", device="A100-80GB?", mbs="4?", vpp="?")
    assert (made.precision, made.device, made.mbs, made.vpp) == ("fp16", "A100-80GB", 4, None)
    assert made.inferred == ("device", "vpp", "mbs", "precision")


def test_two_values_in_a_cell_are_noted() -> None:
    made = run(tp="2 (4)", tflops_gpu="1791 (1593)", precision="FP8-CS (FP8-MX)")
    assert made.tp == 2
    assert made.tflops_gpu == 1791.0
    assert made.twofold == ("tp", "precision", "tflops_gpu")


def test_columns_may_stand_in_any_order_and_a_byte_order_mark_is_no_column() -> None:
    data = b"\xef\xbb\xbf" + table(SMALL, columns=tuple(reversed(COLUMNS)))
    assert parse_runs(data, "runs.csv") == (run(),)


@pytest.mark.parametrize(
    ("column", "cell", "said"),
    [
        ("iter_s", "", "row 2, column iter_s: it is empty"),
        ("iter_s", "?", "row 2, column iter_s: it is empty"),
        ("iter_s", "-1", r"row 2, column iter_s: '-1', it must be above 0"),
        ("iter_s", "0", "row 2, column iter_s: '0', it must be above 0"),
        ("iter_s", "inf", "row 2, column iter_s: 'inf' is not a number"),
        ("iter_s", "nan", "row 2, column iter_s: 'nan' is not a number"),
        ("iter_s", "1e999", "row 2, column iter_s: '1e999', it must be above 0"),
        ("iter_s", "1_0", "row 2, column iter_s: '1_0' is not a number"),
        ("iter_s", "fast", "row 2, column iter_s: 'fast' is not a number"),
        ("mem_gib", "-3", "row 2, column mem_gib: '-3', it must be above 0"),
        ("gpus", "", "row 2, column gpus: it is empty"),
        ("gpus", "8.5", "row 2, column gpus: '8.5' is not a whole number from 1"),
        ("tp", "0", "row 2, column tp: '0' is not a whole number from 1"),
        ("tp", "2 (-1)", r"row 2, column tp: '-1' is not a whole number from 1"),
        ("layers", "99999999999", "row 2, column layers: '99999999999' is not a whole number from 1"),
        ("id", "", "row 2, column id: it is empty"),
        ("source", "x" * (MOST_LETTERS + 1), "row 2, column source: 1001 characters"),
    ],
)
def test_a_wrong_cell_is_named(column: str, cell: str, said: str) -> None:
    with pytest.raises(PipebenchError, match=f"^runs.csv: {said}"):
        run(**{column: cell})


@pytest.mark.parametrize("cell", ["eight per box", "8", "8xA100", "nxn", "DGX"])
def test_nodes_that_say_no_gpus_are_named(cell: str) -> None:
    with pytest.raises(PipebenchError) as caught:
        parse_runs(table(SMALL | {"nodes_gpus": cell}), "runs.csv")
    assert caught.value.message.startswith(f"runs.csv: row 2, column nodes_gpus: '{cell}' does not begin")
    assert caught.value.hint is not None


@pytest.mark.parametrize("cell", ["", "1x8", "nx8", "nx8 RoCE", "2x4, 8x200 Gb/s", "nx8, 400 Gb/s a GPU"])
def test_nodes_begin_with_their_gpus(cell: str) -> None:
    (made,) = parse_runs(table(SMALL | {"nodes_gpus": cell}), "runs.csv")
    assert made.nodes_gpus == cell


def test_a_row_that_is_there_twice_is_named() -> None:
    with pytest.raises(PipebenchError, match="row 3, column id: 'small' is there twice"):
        parse_runs(table(SMALL, SMALL), "runs.csv")


def test_unknown_missing_and_double_columns_are_named_with_the_nearest() -> None:
    with pytest.raises(PipebenchError, match=r"unknown column 'iters' \(did you mean 'iter_s'"):
        parse_runs(table(columns=(*COLUMNS[:-1], "iters")), "runs.csv")
    with pytest.raises(PipebenchError, match="the columns source, how_read are missing"):
        parse_runs(table(columns=COLUMNS[:-2]), "runs.csv")
    with pytest.raises(PipebenchError, match="the column 'id' is there twice"):
        parse_runs(table(columns=(*COLUMNS, "id")), "runs.csv")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (table(), "there are no runs below the header"),
        (table() + b"a,b\n", "row 2 has 2 cells, the header has 31"),
        (table() + b'"a\n', "not a CSV"),
        (b' {"pipebench": "plan"}', "this is JSON, and a table of runs is CSV"),
        (table().replace(b",", b";"), "cells are separated by ';', those of a table of runs by commas"),
        (table().replace(b",", b"\t"), r"cells are separated by '\\t'"),
        (table().rstrip() + b",\n", "a column has no name"),
        (b"[rank0]: step 1\n", "neither a table of runs nor a log"),
    ],
)
def test_what_is_no_table_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(PipebenchError, match=said):
        parse_runs(data, "runs.csv")


def test_a_table_is_bounded() -> None:
    with pytest.raises(PipebenchError, match="a table of runs has at most"):
        parse_runs(b" " * (LARGEST_RUNS_BYTES + 1), "runs.csv")
    many = table(
        *({"id": str(n), "model": "gpt", "gpus": "1", "device": "A", "iter_s": "1"} for n in range(MOST_RUNS))
    )
    assert len(parse_runs(many, "runs.csv")) == MOST_RUNS
    with pytest.raises(PipebenchError, match=f"more than {MOST_RUNS} rows"):
        parse_runs(many + many.splitlines()[-1].replace(b"19999", b"more") + b"\n", "runs.csv")


def test_what_ships_has_sources_and_only_the_rows_that_may_ship() -> None:
    shipped = read_runs("published")
    assert len(shipped) == 161
    assert all(each.source and each.how_read for each in shipped)
    assert not any(each.id.startswith("vtrain") or "vtrain" in each.source.lower() for each in shipped)


def test_what_ships_is_what_was_published() -> None:
    everything = read_runs(str(shared_data("measured/published_runs.csv")))
    assert read_runs("published") == tuple(each for each in everything if not each.id.startswith("vtrain"))
    assert len(everything) == 774
