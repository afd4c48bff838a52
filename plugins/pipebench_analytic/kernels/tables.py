"""Kernel speeds from a user's own CSV of measured kernels."""

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from pipebench.algorithms.descent import Floats
from pipebench.documents.decoding import require_size, without_mark
from pipebench.domain.cluster import DeviceType
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import LARGEST_KERNELS_BYTES, MOST_KERNELS
from pipebench.domain.profile import ELEMENT_BYTES, NARROW_BYTES, NarrowPrecision
from pipebench.system.files import open_regular
from pipebench_analytic.kernels.attention import AttentionTable
from pipebench_analytic.kernels.collectives import OPERATIONS, CollectiveTable
from pipebench_analytic.kernels.gemm import Chip, GemmTable
from pipebench_analytic.kernels.speeds import KernelSpeeds, kernel_speeds
from pipebench_analytic.kernels.validation import fitted_attention, fitted_collectives, fitted_gemm

DTYPES = dict.fromkeys(("bf16", "bfloat16", "fp16", "float16", "half"), "bf16") | {"fp8": "fp8", "fp4": "fp4"}
COLUMNS = {
    "gemm": ("m", "n", "k"),
    "attention": ("batch", "sequence", "heads", "kv_heads", "head_size"),
} | dict.fromkeys(OPERATIONS, ("devices", "bytes"))
"""By op: the columns that its rows need, besides op and latency_ms (and dtype, of gemm)."""
RATE_FACTORS = {"bf16": 1, "fp8": 2, "fp4": 4}
"""Dense rate in a precision over that in 16 bits."""

Row = Mapping[str, str]
MOST = 1e18
"""No shape, size or time of a kernel is larger."""
_NUMBER = re.compile(r"\+?(?:\d{1,99}\.?\d{0,99}|\.\d{1,99})(?:[eE][+-]?\d{1,3})?", re.ASCII)


def speeds_from_csv(
    data: bytes, source: str, device: DeviceType, multiprocessors: int | None = None
) -> KernelSpeeds:
    """The surfaces of the kernels in a CSV with a header; what it does not measure is left out.

    Columns: op (gemm, attention, all_reduce, all_gather, reduce_scatter, all_to_all), dtype (of gemm,
    one of DTYPES), latency_ms, and those that COLUMNS names for the op; others are passed over, in any order.
    source: what the file is called in messages. multiprocessors: needed for a device that does not ship.
    Raises PipebenchError: no such column or op, a column twice, a row of more cells than columns, a number that is
    not above zero, too few rows, no peak rate, more bytes or kernels than are read.
    """
    require_size(data, LARGEST_KERNELS_BYTES, source)
    rows = _rows(data, source)
    by_op: dict[str, list[tuple[int, Row]]] = {}
    for line, row in rows:
        op = row.get("op") or ""
        if op not in COLUMNS:
            raise PipebenchError(f"{source}: line {line}: op is {op!r}", f"it is one of {', '.join(COLUMNS)}")
        by_op.setdefault(op, []).append((line, row))
    chip = _chip(device, multiprocessors)
    gemms: dict[str, list[tuple[int, Row]]] = {}
    for line, row in by_op.get("gemm", []):
        dtype = row.get("dtype") or ""
        if dtype not in DTYPES:
            raise PipebenchError(f"{source}: line {line}: dtype is {dtype!r}", f"it is one of {', '.join(DTYPES)}")
        gemms.setdefault(DTYPES[dtype], []).append((line, row))
    products = {
        precision: fitted_gemm(
            GemmTable(*_arrays(own, "gemm", source)),
            Chip(chip.multiprocessors, RATE_FACTORS[precision] * chip.peak_flops, chip.bytes_s),
            source,
            element_bytes=NARROW_BYTES.get(cast(NarrowPrecision, precision), ELEMENT_BYTES["bf16"]),
        )
        for precision, own in gemms.items()
    }
    attention = by_op.get("attention")
    calls = {op: CollectiveTable(*_arrays(by_op[op], op, source)) for op in OPERATIONS if op in by_op}
    forwards = AttentionTable(*_arrays(attention, "attention", source)) if attention else None
    return KernelSpeeds(
        gemm=products,
        attention=None
        if forwards is None
        else fitted_attention(forwards, chip, source, head_half=_head_half(forwards)),
        collectives=fitted_collectives(calls, source) if calls else None,
    )


_known: dict[tuple[str, str, int | None], KernelSpeeds] = {}
"""By the digest of a table: plans of one problem ask for the same one again and again."""


def own_speeds(path: str, device: DeviceType, multiprocessors: int | None = None) -> KernelSpeeds:
    """The surfaces of a user's own table. The same table is fitted once; a fit takes up to a minute.

    Raises PipebenchError where it cannot be read.
    """
    try:
        with open_regular(path) as file:
            data = file.read(LARGEST_KERNELS_BYTES + 1)
    except OSError as error:
        raise PipebenchError(f"kernels: cannot read {path!r}: {error.strerror or error}") from None
    key = hashlib.sha256(data).hexdigest(), device.name, multiprocessors
    if key not in _known:
        _known[key] = speeds_from_csv(data, path, device, multiprocessors)
    return _known[key]


def _head_half(table: AttentionTable) -> float | None:
    """Of the H100, where the table has one head size only."""
    known = kernel_speeds("H100")
    if len(np.unique(table.head_size)) > 1 or known is None or known.attention is None:
        return None
    return known.attention.surface.head_half


def _chip(device: DeviceType, multiprocessors: int | None) -> Chip:
    """The device's data sheet. Raises PipebenchError: no 16-bit rate, bandwidth or number of multiprocessors."""
    peak = device.peak_flops.get("bf16") or device.peak_flops.get("fp16") or 0.0
    if peak <= 0 or device.memory_bandwidth_bytes_s <= 0:
        raise PipebenchError(f"device type {device.name!r} has no 16-bit peak rate or no memory bandwidth")
    known = kernel_speeds(device.name)
    if multiprocessors is None and known is not None:
        multiprocessors = known.gemm["bf16"].surface.multiprocessors
    if multiprocessors is None:
        raise PipebenchError(f"device type {device.name!r}: the number of its multiprocessors is not known")
    return Chip(multiprocessors, peak, device.memory_bandwidth_bytes_s)


def _rows(data: bytes, source: str) -> list[tuple[int, Row]]:
    """The rows with their line numbers."""
    try:
        text = without_mark(data).decode()
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        twice = [name for name, count in Counter(reader.fieldnames or ()).items() if name and count > 1]
        if twice:
            raise PipebenchError(f"{source}: column {twice[0]} stands twice", "leave one of them out")
        rows: list[tuple[int, Row]] = []
        for row in reader:
            if any(row.get(None, ())):  # cells behind the last heading
                raise PipebenchError(
                    f"{source}: line {reader.line_num}: it has more cells than columns",
                    "a number has a point, no comma: 0.549",
                )
            if len(rows) == MOST_KERNELS:
                raise PipebenchError(f"{source}: more than {MOST_KERNELS} kernels, no more are read")
            rows.append((reader.line_num, row))
    except (UnicodeDecodeError, csv.Error) as error:
        raise PipebenchError(f"{source}: not a CSV file: {error}") from None
    if not rows:
        raise PipebenchError(f"{source}: no kernel in it", "the first line names the columns, others are kernels")
    return rows


def _arrays(rows: Sequence[tuple[int, Row]], op: str, source: str) -> list[Floats]:
    """The columns of an op and its seconds, as arrays."""
    columns = [[_number(row, name, line, source) for line, row in rows] for name in (*COLUMNS[op], "latency_ms")]
    arrays = [np.array(each) for each in columns]
    return [*arrays[:-1], arrays[-1] * 1e-3]


def _number(row: Row, name: str, line: int, source: str) -> float:
    text = row.get(name)
    if text is None:
        raise PipebenchError(f"{source}: line {line}: no column {name}")
    number = float(text) if _NUMBER.fullmatch(text.strip()) else 0.0
    if not 0 < number < MOST:
        raise PipebenchError(
            f"{source}: line {line}: {name} is {text!r}, it must be a number above zero and below {MOST:g}"
        )
    return number
