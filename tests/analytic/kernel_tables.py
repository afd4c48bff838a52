"""The public tables of measured kernels, and the file of coefficients that is made from them.

`python -m tests.analytic.kernel_tables` fits all and writes plugins/pipebench_analytic/kernels/devices.toml.
Needs pyarrow and the shared data.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pipebench.algorithms.descent import Floats
from pipebench.domain.profile import NARROW_BYTES
from pipebench_analytic.kernels import speeds
from pipebench_analytic.kernels.attention import AttentionTable
from pipebench_analytic.kernels.collectives import OPERATIONS, CollectiveTable, Operation
from pipebench_analytic.kernels.gemm import Chip, GemmTable
from pipebench_analytic.kernels.tables import RATE_FACTORS
from pipebench_analytic.kernels.validation import fitted_attention, fitted_collectives, fitted_gemm

Place = Callable[[str], Path]
"""The path of a shared file by its name under data/."""

TARGET = Path(speeds.__file__).with_name("devices.toml")
AIC = "ai-dynamo/aiconfigurator 095f58a, Apache-2.0"
SOURCES = {
    "aiconfigurator": f"{AIC}, Copyright NVIDIA CORPORATION & AFFILIATES: systems' measured kernel tables",
    "vtrain": "VIA-Research/vTrain f8dda84, MIT: NCCL all-reduce on 2 to 8 A100, 1 MiB and more",
}
HEADER = """\
# Kernel speeds: coefficients that were fitted to public tables of measured kernels; no table is copied.
# Made by `python -m tests.analytic.kernel_tables`: do not edit.
# What each coefficient is: GemmSurface, AttentionSurface and CollectiveCurve beside this file. Units: seconds
# (_s at the end of a time), FLOP/s, bytes/s and elements/s (flops_s, bytes_s, elements_s), bytes.
# held_back: errors on a fifth of the shapes (of sizes, for collectives), which the fit did not see. mean: of the
# error's size. signed: above zero where the surface is too slow.
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """Files of one device, and its data sheet: peak in bf16; twice that in fp8, four times in fp4."""

    gemm: str
    nccl: str
    chip: Chip
    precisions: tuple[str, ...]
    attention: str = ""
    attention_like: str = "A100"


DEVICES = {
    "A100": Measured(
        "a100_sxm_gemm_sglang_0.5.10_gemm_perf",
        "a100_sxm_comm_nccl_2.27.3_nccl_perf",
        Chip(108, 312e12, 2.039e12),
        ("bf16",),
        "a100_sxm_attention_trtllm_1.0.0_context_attention_perf",
    ),
    "H100": Measured(
        "h100_sxm_gemm_trtllm_1.3.0rc10_gemm_perf",
        "h100_sxm_comm_nccl_2.27.3_nccl_perf",
        Chip(132, 989e12, 3.35e12),
        ("bf16", "fp8"),
        "h100_sxm_attention_trtllm_1.3.0rc10_context_attention_perf",
    ),
    "H200": Measured(
        "h200_sxm_gemm_trtllm_1.3.0rc10_gemm_perf",
        "h200_sxm_comm_nccl_2.26.2_nccl_perf",
        Chip(132, 989e12, 4.8e12),
        ("bf16", "fp8"),
        attention_like="H100",
    ),
    "B200": Measured(
        "b200_sxm_gemm_trtllm_1.3.0rc10_gemm_perf",
        "b200_sxm_comm_nccl_2.27.3_nccl_perf",
        Chip(148, 2250e12, 8e12),
        ("bf16", "fp8", "fp4"),
        attention_like="H100",
    ),
    "L40S": Measured(
        "l40s_gemm_vllm_0.14.0_gemm_perf",
        "l40s_comm_nccl_2.27.3_nccl_perf",
        Chip(142, 362e12, 0.864e12),
        ("bf16", "fp8"),
    ),
}
TABLE_NAMES = {"bf16": "bfloat16", "fp8": "fp8", "fp4": "nvfp4"}
NCCL_NAMES: dict[Operation, str] = {each: each for each in OPERATIONS} | {"all_to_all": "alltoall"}
ELEMENT_BYTES = {"half": 2, "int8": 1}
VTRAIN_SIZES = tuple(
    2**20 * step for step in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
)
"""Of a table with each MiB: as dense on a logarithmic scale as the other table."""


def _read(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    from pyarrow import parquet

    table = parquet.read_table(path)
    return {name: table[name].to_numpy() for name in table.column_names}


def _parquet(name: str, place: Place) -> dict[str, np.ndarray[Any, Any]]:
    return _read(place(f"kernels/{name}.parquet"))


def gemm_table(device: str, precision: str, place: Place) -> GemmTable:
    """All products of a device in a precision."""
    rows = _parquet(DEVICES[device].gemm, place)
    own = rows["gemm_dtype"] == TABLE_NAMES[precision]
    m, n, k = (rows[name][own].astype(float) for name in ("m", "n", "k"))
    return GemmTable(m, n, k, rows["latency"][own] * 1e-3)


def attention_table(device: str, place: Place) -> AttentionTable:
    """All forwards in bf16 without a window, of sequences of 16 tokens and more."""
    rows = _parquet(DEVICES[device].attention, place)
    own = (rows["window_size"] == 0) & (rows["attn_dtype"] == "bfloat16") & (rows["kv_cache_dtype"] == "bfloat16")
    own &= rows["isl"] >= 16
    names = ("batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim")
    return AttentionTable(*(rows[name][own].astype(float) for name in names), rows["latency"][own] * 1e-3)


def vtrain_all_reduce(devices: int, place: Place) -> tuple[Floats, Floats]:
    """Bytes and seconds (out of place) of some sizes."""
    rows = np.loadtxt(
        place(f"kernels/vtrain_allreduce/a100_gpu{devices}.txt"), delimiter=",", skiprows=1, usecols=(0, 3)
    )
    chosen = rows[np.isin(rows[:, 0], VTRAIN_SIZES)]
    return chosen[:, 0], chosen[:, 1] * 1e-9


def collective_tables(device: str, place: Place) -> dict[Operation, CollectiveTable]:
    """All calls by operation; of the A100's all-reduce in both tables."""
    rows = _parquet(DEVICES[device].nccl, place)
    size = rows["message_size"] * np.array([ELEMENT_BYTES[each] for each in rows["nccl_dtype"]], float)
    found: dict[Operation, CollectiveTable] = {}
    for operation, name in NCCL_NAMES.items():
        own = rows["op_name"] == name
        found[operation] = CollectiveTable(
            rows["num_gpus"][own].astype(float), size[own], rows["latency"][own] * 1e-3
        )
    if device == "A100":
        first = found["all_reduce"]
        groups = sorted({int(each) for each in first.devices})
        more = {each: vtrain_all_reduce(each, place) for each in groups}
        found["all_reduce"] = CollectiveTable(
            np.concatenate(
                [first.devices, *(np.full(len(size), float(each)) for each, (size, _) in more.items())]
            ),
            np.concatenate([first.bytes, *(size for size, _ in more.values())]),
            np.concatenate([first.seconds, *(seconds for _, seconds in more.values())]),
        )
    return found


def device_speeds(device: str, place: Place, head_half: float | None) -> speeds.KernelSpeeds:
    """All that is measured of a device, fitted."""
    own = DEVICES[device]
    return speeds.KernelSpeeds(
        attention_like=own.attention_like,
        gemm={
            precision: fitted_gemm(
                gemm_table(device, precision, place),
                replace(own.chip, peak_flops=RATE_FACTORS[precision] * own.chip.peak_flops),
                f"aiconfigurator: {own.gemm}, {TABLE_NAMES[precision]}",
                element_bytes=NARROW_BYTES.get(precision, 2),  # type: ignore[call-overload]
            )
            for precision in own.precisions
        },
        attention=fitted_attention(
            attention_table(device, place), own.chip, f"aiconfigurator: {own.attention}", head_half=head_half
        )
        if own.attention
        else None,
        collectives=fitted_collectives(
            collective_tables(device, place),
            f"aiconfigurator: {own.nccl}, half and int8" + ("; vtrain: all-reduce" if device == "A100" else ""),
        ),
    )


def toml_text(devices: dict[str, speeds.KernelSpeeds]) -> str:
    """The file. Each record is a table, what has no records in it is a line."""
    lines = [HEADER, *_table(("sources",), SOURCES)]
    for name, each in devices.items():
        lines += _table(("devices", name), msgspec.to_builtins(each))
    return "\n".join(lines)


def _table(keys: tuple[str, ...], content: dict[str, Any]) -> list[str]:
    inner = {key: each for key, each in content.items() if isinstance(each, dict) and keys[-1:] != ("held_back",)}
    plain = {key: each for key, each in content.items() if key not in inner and each is not None}
    lines = [f"[{'.'.join(keys)}]", *(f"{_key(key)} = {_value(each)}" for key, each in plain.items()), ""]
    found = lines if plain else []
    for key, each in inner.items():
        found = found + _table((*keys, key), each)
    return found


def _key(text: str) -> str:
    return text if text.replace("_", "").isalnum() else f'"{text}"'


def _value(content: Any) -> str:
    if isinstance(content, dict):
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in content.items()) + " }"
    if isinstance(content, list | tuple):
        records = any(isinstance(each, dict) for each in content)
        joint, ends = (",\n  ", ("[\n  ", ",\n]")) if records else (", ", ("[", "]"))
        return ends[0] + joint.join(_value(each) for each in content) + ends[1]
    if isinstance(content, bool):
        return str(content).lower()
    if isinstance(content, str):
        return f'"{content}"'
    return f"{content:g}" if isinstance(content, float) and content >= 1e6 else repr(content)


def main() -> None:
    """Fit everything and write the file."""
    from tests.shared_data import FOLDER

    def place(name: str) -> Path:
        return FOLDER / name

    head = device_speeds("H100", place, None)
    assert head.attention is not None
    found = {
        name: head if name == "H100" else device_speeds(name, place, head.attention.surface.head_half)
        for name in DEVICES
    }
    TARGET.write_text(toml_text(found))


if __name__ == "__main__":
    main()
