"""Kernel surfaces against closed forms, against points that they made, and against the public tables."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.bench.accuracy.expression import NARROW_DEVICES
from pipebench.domain.cluster import DeviceType
from pipebench.domain.errors import PipebenchError
from pipebench.formats.devices import device_names, load_device
from pipebench_analytic.kernels.attention import AttentionTable, fit_attention
from pipebench_analytic.kernels.collectives import CollectiveTable, fit_collective
from pipebench_analytic.kernels.gemm import Chip, GemmSurface, GemmTable, fit_gemm
from pipebench_analytic.kernels.speeds import (
    SAME_CHIP,
    KernelPrecision,
    kernel_speeds,
    measured_elsewhere,
    shipped_speeds,
)
from pipebench_analytic.kernels.tables import RATE_FACTORS, speeds_from_csv
from pipebench_analytic.kernels.validation import fit_error, held_back
from tests.nightly import examples
from tests.shared_data import shared_data

SURFACES = [
    (name, precision, fitted.surface)
    for name, device in shipped_speeds().items()
    for precision, fitted in device.gemm.items()
]
PEAKS = {"A100": 312e12, "H100": 989e12, "H200": 989e12, "B200": 2250e12, "L40S": 362e12}
A100 = DeviceType(
    name="A100-SXM4-80GB", memory_bytes=80 * 10**9, peak_flops={"bf16": 312e12}, memory_bandwidth_bytes_s=2.039e12
)
sizes = st.integers(1, 70_000)


def surface_of(name: str, precision: str = "bf16") -> GemmSurface:
    return shipped_speeds()[name].gemm[precision].surface


@pytest.mark.parametrize(("name", "precision", "surface"), SURFACES, ids=lambda each: str(each)[:5])
@given(m=sizes, n=sizes, k=sizes, more=st.integers(1, 5000))
@settings(max_examples=examples(60), deadline=None)
def test_a_larger_product_takes_no_less_time(
    name: str, precision: str, surface: GemmSurface, m: int, n: int, k: int, more: int
) -> None:
    base = surface.seconds(m, n, k)
    larger = surface.seconds([m + more, m, m], [n, n + more, n], [k, k, k + more])
    assert (larger >= base * (1 - 1e-12)).all()


@pytest.mark.parametrize(("name", "precision", "surface"), SURFACES, ids=lambda each: str(each)[:5])
@given(m=sizes, n=sizes, k=sizes)
@settings(max_examples=examples(60), deadline=None)
def test_no_product_is_faster_than_the_peak_rate_or_the_weights_from_memory(
    name: str, precision: str, surface: GemmSurface, m: int, n: int, k: int
) -> None:
    seconds = float(surface.seconds(m, n, k))
    peak = PEAKS[name] * RATE_FACTORS[precision]
    assert seconds >= 2 * m * n * k / peak
    assert seconds >= surface.element_bytes * n * k / surface.weight_bytes_s + surface.fixed_s - 1e-12


def test_seconds_take_arrays_that_broadcast() -> None:
    surface = surface_of("H100")
    rows, columns = np.array([[512], [4096]]), np.array([1024, 2048, 8192])
    together = surface.seconds(rows, columns, 4096)
    assert together.shape == (2, 3)
    assert together[1, 2] == surface.seconds(4096, 8192, 4096)


@pytest.mark.parametrize(("name", "precision", "surface"), SURFACES, ids=lambda each: str(each)[:5])
def test_a_longer_k_never_opens_a_faster_cut(name: str, precision: str, surface: GemmSurface) -> None:
    inner = np.arange(1, 3000)
    assert (np.diff(surface.seconds(64, 64, inner)) > -1e-15).all()


def test_a_tile_more_than_a_wave_costs_a_step() -> None:
    """One tile shape of 128 x 128 on 4 multiprocessors, no bytes: waves are counted by hand."""
    surface = GemmSurface(
        multiprocessors=4,
        element_bytes=2,
        fixed_s=1e-6,
        weight_bytes_s=1e30,
        activation_bytes_s=1e30,
        cache_bytes=0.0,
        overlap=8.0,
        sustained_flops_s=1e30,
        slowdown=0.1,
        slowdown_bytes=1e9,
        wave_share=1.0,
        split_s=1.0,
        split_bytes_s=1e30,
        tile_flops_s=(1.0, 1.0, 1.0, 1e12, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
        tile_s=(1e-6,) * 10,
    )
    wave = 2 * 128 * 128 * 1000 / 1e12 + 1e-6
    assert surface.seconds(512, 128, 1000) == pytest.approx(1e-6 + wave)
    assert surface.seconds(513, 128, 1000) == pytest.approx(1e-6 + 2 * wave)


def products_of(surface: GemmSurface, count: int) -> GemmTable:
    chance = np.random.default_rng(5)
    m, n, k = (2.0 ** chance.uniform(6, 14, count) // 8 * 8 for _ in range(3))
    return GemmTable(m, n, k, surface.seconds(m, n, k))


def test_a_fit_finds_the_surface_that_made_its_points() -> None:
    surface = surface_of("A100")
    made = products_of(surface, 200)
    found = fit_gemm(made, Chip(108, 312e12, 2.039e12), jumps=1)
    new = products_of(surface, 900)
    error = fit_error(found.seconds(new.m, new.n, new.k), new.seconds)
    assert error.mean < 0.03
    assert abs(error.signed) < 0.01
    assert fit_gemm(made, Chip(108, 312e12, 2.039e12), jumps=1) == found


@pytest.mark.parametrize("name", ["A100", "H100", "H200", "B200", "L40S"])
def test_attention_grows_and_is_not_faster_than_the_peak(name: str) -> None:
    surface = shipped_speeds()[name].fused_attention()
    assert surface is not None
    assert surface.modelled == (name not in {"A100", "H100"})
    sequence = np.array([128, 512, 2048, 8192, 32768])
    causal = surface.seconds(4, sequence, 16, 16, 128)
    full = surface.seconds(4, sequence, 16, 16, 128, causal=False)
    assert (np.diff(causal) > 0).all()
    assert (full >= causal).all()
    assert (causal >= 4 * 4 * 16 * 128 * sequence * (sequence + 1) / 2 / PEAKS[name]).all()
    assert full[-1] == pytest.approx(2 * causal[-1], rel=0.1)
    assert (surface.seconds(4, sequence, 16, 2, 128) < causal).all()


def test_a_fit_of_attention_finds_the_surface_that_made_its_points() -> None:
    surface = shipped_speeds()["H100"].fused_attention()
    assert surface is not None
    chance = np.random.default_rng(6)
    heads = 2.0 ** chance.integers(2, 7, 400)
    shape = (2.0 ** chance.integers(0, 7, 400), 2.0 ** chance.integers(4, 14, 400), heads, heads)
    size = 64.0 * chance.integers(1, 3, 400)
    table = AttentionTable(*shape, size, surface.seconds(*shape, size))
    found = fit_attention(table, Chip(132, 989e12, 3.35e12))
    assert fit_error(found.seconds(*shape, size), table.seconds).mean < 0.02


def test_collectives_are_zero_for_one_and_unknown_beyond_the_node() -> None:
    for device in shipped_speeds().values():
        assert device.collectives is not None
        curves = device.collectives.curves
        assert curves.seconds("all_reduce", 1, 1e6) == 0
        assert curves.seconds("all_reduce", 16, 1e6) is None
        two, three, four = (curves.seconds("all_gather", each, 1e8) for each in (2, 3, 4))
        assert two is not None
        assert four is not None
        assert three == pytest.approx((two + four) / 2)


def test_a_fit_of_collectives_finds_the_curve_that_made_its_points() -> None:
    size = 2.0 ** np.arange(8, 30)
    table = CollectiveTable(np.full(22, 4.0), size, 1e-5 + 2e-9 * np.sqrt(size) + size / 2e11)
    (curve,) = fit_collective(table)
    assert (curve.devices, curve.fixed_s, curve.root_s, curve.bytes_s) == pytest.approx(
        (4, 1e-5, 2e-9, 2e11), rel=1e-3
    )


@pytest.mark.parametrize("name", ["A100-SXM4-80GB", "a100-80gb", "NVIDIA A100-SXM4-40GB", "dgx-a100"])
def test_names_of_an_a100(name: str) -> None:
    assert kernel_speeds(name) is shipped_speeds()["A100"]


@pytest.mark.parametrize("name", ["V100-SXM2-32GB", "A1000", "GH200", "H100-PCIe-80GB", "H100 NVL", "a100h100"])
def test_names_of_other_devices(name: str) -> None:
    assert kernel_speeds(name) is None


@pytest.mark.parametrize(
    ("name", "chip", "factor", "fp4"),
    [
        ("GB200-186GB", "B200", 10 / 9, 10 / 9),
        ("NVIDIA GB300", "B200", 10 / 9, 15 / 9),
        ("B300-SXM-270GB", "B200", 1.0, 13.5 / 9),
        ("H800-SXM5-80GB", "H100", 1.0, None),
    ],
)
def test_kernels_of_a_device_with_a_measured_chip_run_at_its_own_rate(
    name: str, chip: str, factor: float, fp4: float | None
) -> None:
    """Products that memory does not bind: as many times as fast as the data sheets say, in each precision."""
    speeds = kernel_speeds(name)
    assert speeds is not None
    assert measured_elsewhere(name) == f"kernels of {name} are those measured on {chip}"
    expected: dict[KernelPrecision, float] = {"bf16": factor, "fp8": factor} | ({"fp4": fp4} if fp4 else {})
    assert set(speeds.gemm) == set(expected)
    for precision, times in expected.items():
        ours, measured = speeds.products(precision), shipped_speeds()[chip].products(precision)
        assert ours is not None
        assert measured is not None
        # The conversion of a factor to 4 bits, and what memory moves meanwhile, are not faster.
        ratio = float(measured.seconds(*[65536] * 3)) / float(ours.seconds(*[65536] * 3))
        assert ratio == pytest.approx(times, rel=0.02)
        if precision != "fp4":  # whose weights are so few bytes that memory does not bind one row
            row = float(ours.seconds(1, 8192, 8192)), float(measured.seconds(1, 8192, 8192))
            assert row[0] == pytest.approx(row[1], rel=0.1)
    ours_long, long = speeds.fused_attention(), shipped_speeds()[chip].fused_attention()
    assert ours_long is not None
    assert long is not None
    ratio = float(long.seconds(1, 65536, 16, 16, 128)) / float(ours_long.seconds(1, 65536, 16, 16, 128))
    assert ratio == pytest.approx(factor, rel=0.02)


def test_the_rate_of_a_chip_is_that_of_the_table_of_devices() -> None:
    """The factor and the names of devices that multiply in 8 bits stand apart from what they follow from."""
    peaks = {name: load_device(name).peak_flops.get("bf16", 0.0) for name in device_names()}
    of_chip = {name.partition("-")[0]: peak for name, peak in peaks.items() if "PCIe" not in name}
    for name, same in SAME_CHIP.items():
        assert of_chip[name] / of_chip[same.chip] == pytest.approx(same.factor)
    for precision, devices in NARROW_DEVICES.items():
        narrow = {name for name in device_names() if (known := kernel_speeds(name)) and known.products(precision)}
        assert {name for name in device_names() if name.startswith(devices)} == narrow


@pytest.mark.parametrize("name", ["A100-SXM4-80GB", "GH200", "H100-PCIe-80GB"])
def test_where_kernels_were_measured(name: str) -> None:
    unknown = f"kernels of {name} are not calibrated: peak rates"
    assert measured_elsewhere(name) == ("" if name.startswith("A100") else unknown)


def test_fp16_runs_as_bf16_and_the_a100_has_no_fp8() -> None:
    speeds = shipped_speeds()["A100"]
    assert speeds.products("fp16") is speeds.products("bf16")
    assert speeds.products("fp8") is None


def csv_of(surface: GemmSurface, slower: float) -> bytes:
    table = products_of(surface, 150)
    rows = [
        f"gemm,bf16,{m:.0f},{n:.0f},{k:.0f},{1e3 * slower * seconds},,"
        for m, n, k, seconds in zip(table.m, table.n, table.k, table.seconds, strict=True)
    ]
    calls = [f"all_reduce,,,,,{0.01 + size / 1e8},4,{size}" for size in 2 ** np.arange(10, 30)]
    return "\n".join(["op,dtype,m,n,k,latency_ms,devices,bytes", *rows, *calls]).encode()


def test_a_users_table_becomes_surfaces() -> None:
    made = speeds_from_csv(csv_of(surface_of("A100"), 1.3), "mine.csv", A100)
    products = made.products("bf16")
    assert products is not None
    assert float(products.seconds(4096, 4096, 4096)) == pytest.approx(
        1.3 * float(surface_of("A100").seconds(4096, 4096, 4096)), rel=0.08
    )
    assert made.attention is None
    assert made.collectives is not None
    assert made.collectives.curves.seconds("all_reduce", 4, 1e8) == pytest.approx(1e-5 + 1e8 / 1e11, rel=0.01)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "no kernel in it"),
        (b"op,latency_ms\nconv,1\n", "line 2: op is 'conv'"),
        (b"op,dtype,m,n,k,latency_ms\ngemm,int4,1,1,1,1\n", "line 2: dtype is 'int4'"),
        (b"op,dtype,m,n,k,latency_ms\ngemm,bf16,1,1,1,0\n", "latency_ms is '0'"),
        (b"op,dtype,m,n,k,latency_ms\ngemm,bf16,1,nan,1,1\n", "n is 'nan'"),
        (b"op,dtype,m,n,latency_ms\ngemm,bf16,1,1,1\n", "no column k"),
        (b"op,dtype,m,n,k,latency_ms\ngemm,bf16,1,1,1,1\n", "1 matrix products were measured, a fit needs 100"),
        (b"\xff\xfe", "not a CSV file"),
        (b"op,dtype,m,n,k,latency_ms\ngemm,bf16,1_0,1,1,1\n", "m is '1_0', it must be a number above zero"),
        ("op,dtype,m,n,k,latency_ms\ngemm,bf16,1,1,1,٣\n".encode(), "latency_ms is '٣'"),
        (b"op,dtype,m,n,k,latency_ms\ngemm,bf16,1,1,1,1e18\n", "latency_ms is '1e18', .* and below 1e\\+18"),
        (
            b"op,dtype,m,n,k,latency_ms\ngemm,bf16,1,1,1,1,549\n",
            "line 2: it has more cells than columns",
        ),
        (b"op,dtype,m,n,k,latency_ms,m\ngemm,bf16,1,1,1,1,9\n", "column m stands twice"),
        (b"op\n" + b"gemm\n" * 200_001, "more than 200000 kernels, no more are read"),
        (b" " * (2**24 + 1), "16777217 bytes, at most 16 MiB are read"),
    ],
)
def test_a_users_table_that_cannot_be_read(text: bytes, message: str) -> None:
    with pytest.raises(PipebenchError, match=message):
        speeds_from_csv(text, "mine.csv", A100)


def test_a_device_that_does_not_ship_needs_its_multiprocessors() -> None:
    other = DeviceType(name="other", memory_bytes=10**9, peak_flops={"fp16": 1e14}, memory_bandwidth_bytes_s=1e12)
    with pytest.raises(PipebenchError, match="multiprocessors"):
        speeds_from_csv(b"op,devices,bytes,latency_ms\nall_reduce,2,1,1\n", "mine.csv", other)


def place(name: str) -> Path:
    return shared_data(name)


@pytest.mark.parametrize(("name", "precision", "surface"), SURFACES, ids=lambda each: str(each)[:5])
def test_the_error_of_products_is_what_the_file_says(name: str, precision: str, surface: GemmSurface) -> None:
    pytest.importorskip("pyarrow")
    from tests.analytic.kernel_tables import gemm_table

    table = gemm_table(name, precision, place)
    rest = table.part(held_back(table.n, table.k))
    large = rest.part(rest.m >= 512)
    found = fit_error(surface.seconds(large.m, large.n, large.k), large.seconds)
    assert found == shipped_speeds()[name].gemm[precision].origin.held_back["m >= 512"]
    assert abs(found.signed) <= (0.0125 if precision == "fp4" else 0.01)


@pytest.mark.parametrize("name", ["A100", "H100"])
def test_the_error_of_attention_is_what_the_file_says(name: str) -> None:
    pytest.importorskip("pyarrow")
    from tests.analytic.kernel_tables import attention_table

    fitted = shipped_speeds()[name].attention
    assert fitted is not None
    table = attention_table(name, place)
    rest = table.part(held_back(table.heads, table.kv_heads))
    spent = fitted.surface.seconds(rest.batch, rest.sequence, rest.heads, rest.kv_heads, rest.head_size)
    assert fit_error(spent, rest.seconds) == fitted.origin.held_back["all"]


@pytest.mark.parametrize("name", ["A100", "H100", "H200", "B200", "L40S"])
def test_collectives_are_as_fitted(name: str) -> None:
    pytest.importorskip("pyarrow")
    from tests.analytic.kernel_tables import collective_tables

    fitted = shipped_speeds()[name].collectives
    assert fitted is not None
    for operation, table in collective_tables(name, place).items():
        for curve, shipped in zip(fit_collective(table), getattr(fitted.curves, operation), strict=True):
            assert curve.seconds(1e8) == pytest.approx(shipped.seconds(1e8), rel=1e-3)


@pytest.mark.parametrize("devices", [3, 5, 6, 7])
def test_group_sizes_between_the_fitted_ones_hold_on_the_a100(devices: int) -> None:
    from tests.analytic.kernel_tables import vtrain_all_reduce

    size, seconds = vtrain_all_reduce(devices, place)
    fitted = shipped_speeds()["A100"].collectives
    assert fitted is not None
    large = size >= 2**24
    found = fitted.curves.seconds("all_reduce", devices, size[large])
    assert found is not None
    assert fit_error(found, seconds[large]).mean < 0.15
