"""Rates fitted to profiles whose times follow from known rates: they come back and predict what was not there."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from pipebench.documents.document import encode
from pipebench.domain.calibration import Calibration, Direction
from pipebench.domain.cluster import DeviceType
from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile, Provenance
from pipebench_analytic import calibration as fitting
from pipebench_analytic.calibration import measured_times, read_sources
from pipebench_analytic.fit import TimedPoint, fit_rates
from pipebench_analytic.plugin import AnalyticOptions
from pipebench_analytic.roofline import Kernel, Rates
from pipebench_analytic.work import Kernels, graph_work
from tests.analytic.profiling import run
from tests.models.zoo import model

CORE = DeviceType(name="core", memory_bytes=10**9)
SIZES = (1, 2, 3, 4, 8, 16, 32, 64)
CONTRACTION = Rates(50e9, 100.0, 5e9, 20e-6)
PASSING = Rates(2.0**62, 0.0, 4e9, 10e-6)
KNOWN: dict[tuple[str, Direction], Rates] = {
    ("conv2d", "forward"): Rates(60e9, 300.0, 1.5e9, 30e-6),
    ("conv2d", "backward"): Rates(40e9, 900.0, 0.8e9, 50e-6),
    ("relu", "backward"): Rates(2.0**62, 0.0, 2e9, 5e-6),
}


def rates(kernel: Kernel) -> Rates:
    return KNOWN.get((kernel.kind, kernel.direction), CONTRACTION if kernel.rows else PASSING)


def made(
    graph: OperatorGraph, sizes: Sequence[int] = SIZES, factor: Callable[[int], float] = lambda number: 1.0
) -> Profile:
    """A profile that says it was measured; the n-th time is multiplied by factor(n)."""
    number = 0
    operators = []

    def spent(parts: Sequence[Kernel | None], size: int) -> float:
        nonlocal number
        number += 1
        return factor(number) * sum(rates(each).seconds(each, size) for each in parts if each is not None)

    for work in graph_work(graph, 4):
        kernels: Kernels = work.kernels()
        operators.append(
            OperatorCosts(
                operator=work.operator.name,
                forward_s=tuple(spent([kernels.forward], size) for size in sizes),
                backward_s=tuple(spent([kernels.input_gradient, kernels.weight_gradient], size) for size in sizes),
            )
        )
    costs = DeviceCosts(device_type="core", micro_batches=tuple(sizes), operators=tuple(operators))
    return Profile(name=graph.name, graph=graph, costs=(costs,), provenance=Provenance(made_by="clock"))


def saved(folder: Path, *profiles: Profile) -> str:
    paths = [folder / f"{number}.json" for number in range(len(profiles))]
    for path, profile in zip(paths, profiles, strict=True):
        path.write_bytes(encode("profile", profile))
    return ":".join(map(str, paths))


def said(profile: Profile) -> Calibration:
    assert isinstance(profile.provenance.calibration, Calibration)
    return profile.provenance.calibration


RESNET = model("resnet50", image_size=64)


def test_known_rates_come_back_without_an_error(tmp_path: Path) -> None:
    profile = run(RESNET, (1, 3, 64), CORE, calibrate=saved(tmp_path, made(RESNET)))
    found = {(each.kind, each.direction): each for each in said(profile).fits}
    for key, known in KNOWN.items():
        fit = found[key]
        if fit.contraction:
            assert fit.flops_per_s == pytest.approx(known.flops_per_s, rel=1e-6)
            assert fit.r_half == pytest.approx(known.r_half, rel=1e-5)
        assert fit.bytes_per_s == pytest.approx(known.bytes_per_s, rel=1e-6)
        assert fit.launch_s == pytest.approx(known.launch_s, rel=1e-6)
        assert (fit.errors.median, fit.errors.p90) == pytest.approx((0, 0), abs=1e-8)
        assert fit.held_out is not None
        assert fit.held_out.p90 == pytest.approx(0, abs=1e-6)
    assert said(profile).left_out == "micro-batch"
    assert set(said(profile).sums) == {f"resnet50 at micro-batch {size}" for size in SIZES}
    assert list(said(profile).sums.values()) == pytest.approx([0] * len(SIZES), abs=1e-6)
    # without one sample the linear shows no bound of memory
    assert list(said(profile).held_out_sums.values()) == pytest.approx([0] * len(SIZES), abs=1e-3)


def test_sizes_that_were_not_measured_are_predicted(tmp_path: Path) -> None:
    profile = run(RESNET, (5, 128), CORE, calibrate=saved(tmp_path, made(RESNET)))
    truth = made(RESNET, (5, 128))
    for one, other in zip(profile.costs[0].operators, truth.costs[0].operators, strict=True):
        assert one.forward_s == pytest.approx(other.forward_s, rel=1e-6)
        assert one.backward_s == pytest.approx(other.backward_s, rel=1e-6)


def test_a_model_that_was_not_measured_is_predicted(tmp_path: Path) -> None:
    vgg = model("vgg16", image_size=64)
    profile = run(vgg, (2,), CORE, calibrate=saved(tmp_path, made(RESNET)))
    truth = made(vgg, (2,))
    convolutions = [n for n, each in enumerate(vgg.operators) if each.kind in ("conv2d", "relu")]
    for number in convolutions:
        one, other = profile.costs[0].operators[number], truth.costs[0].operators[number]
        assert one.forward_s == pytest.approx(other.forward_s, rel=1e-6)
        assert one.backward_s == pytest.approx(other.backward_s, rel=1e-6)


def test_several_models_leave_out_one_after_the_other(tmp_path: Path) -> None:
    files = saved(
        tmp_path, made(RESNET), made(model("vgg16", image_size=64)), made(model("transformer", layers=2))
    )
    told = said(run(RESNET, (1,), CORE, calibrate=files))
    assert told.left_out == "model"
    assert list(told.sums.values()) == pytest.approx([0] * 3 * len(SIZES), abs=1e-6)
    # attention is in one model only: without it, it has the rates of the other contractions
    worst = max(told.held_out_sums, key=lambda name: abs(told.held_out_sums[name]))
    assert worst.startswith("transformer")
    convolution = next(each for each in told.fits if (each.kind, each.direction) == ("conv2d", "forward"))
    assert convolution.held_out is not None
    assert convolution.held_out.p90 == pytest.approx(0, abs=1e-6)


def test_a_few_times_that_are_far_off_change_little(tmp_path: Path) -> None:
    noisy = made(RESNET, factor=lambda number: 10.0 if number % 20 == 0 else 1.0)
    told = said(run(RESNET, (1,), CORE, calibrate=saved(tmp_path, noisy)))
    fit = next(each for each in told.fits if (each.kind, each.direction) == ("conv2d", "forward"))
    known = KNOWN["conv2d", "forward"]
    assert fit.flops_per_s == pytest.approx(known.flops_per_s, rel=0.02)
    assert fit.launch_s == pytest.approx(known.launch_s, rel=0.05)
    assert fit.errors.median < 0.01
    assert fit.errors.p90 < 0.1


def test_the_errors_are_those_of_the_profile_that_is_made(tmp_path: Path) -> None:
    """Medians and sums worked out again from the files."""
    draw = np.random.default_rng(3)
    noisy = made(RESNET, (1, 4), factor=lambda number: float(draw.lognormal(0.0, 0.3)))
    profile = run(RESNET, (1, 4), CORE, calibrate=saved(tmp_path, noisy))
    pairs = [
        (one.forward_s[size], other.forward_s[size])
        for one, other, op in zip(
            profile.costs[0].operators, noisy.costs[0].operators, RESNET.operators, strict=True
        )
        for size in (0, 1)
        if op.kind == "conv2d"
    ]
    fit = next(each for each in said(profile).fits if (each.kind, each.direction) == ("conv2d", "forward"))
    apart = sorted(abs(one / other - 1) for one, other in pairs)
    assert fit.points == len(pairs)
    assert fit.errors.median == pytest.approx(np.median(apart), rel=1e-3)
    assert fit.errors.p90 == pytest.approx(np.quantile(apart, 0.9), rel=1e-3)
    assert 0.1 < fit.errors.median < 0.4
    for position, size in enumerate((1, 4)):
        sums = [
            sum(each.forward_s[position] + each.backward_s[position] for each in one.costs[0].operators)
            for one in (profile, noisy)
        ]
        stated = said(profile).sums[f"resnet50 at micro-batch {size}"]
        assert stated == pytest.approx(sums[0] / sums[1] - 1, abs=1e-4)


def test_a_kind_with_few_times_takes_the_curve_of_the_others(tmp_path: Path) -> None:
    """One linear at two sizes: not enough for four rates."""
    profile = made(RESNET, (1, 8))
    told = said(run(RESNET, (1,), CORE, calibrate=saved(tmp_path, profile)))
    by_key = {(each.kind, each.direction): each for each in told.fits}
    linear = by_key["linear", "forward"]
    together = next(e for e in told.fits if not e.kind and e.contraction and e.direction == "forward")
    assert linear.points == 2
    assert linear.r_half == together.r_half
    assert linear.flops_per_s is not None
    assert together.flops_per_s is not None
    factor = together.flops_per_s / linear.flops_per_s
    assert together.bytes_per_s / linear.bytes_per_s == pytest.approx(factor)
    assert linear.launch_s / together.launch_s == pytest.approx(factor)


def test_a_bound_that_is_not_seen_is_as_slow_as_it_may_be() -> None:
    """Times that grow with FLOP only: memory is not infinitely fast, it is just not in the way."""
    kernels = [Kernel(1e9 * n, 1e3 * n, 0.0, 64.0) for n in (1, 2, 5, 9)]
    points = [TimedPoint((kernel,), 1, kernel.flops / 1e10 + 1e-5) for kernel in kernels]
    found = fit_rates(points)
    assert found.flops_per_s * 64 / (64 + found.r_half) == pytest.approx(1e10, rel=1e-6)
    assert found.bytes_per_s == pytest.approx(1e4, rel=1e-6)
    assert [point.seconds_at(found) for point in points] == pytest.approx([p.seconds for p in points], rel=1e-6)


def test_weight_gradients_that_were_measured_apart_are_times_of_their_own(tmp_path: Path) -> None:
    profile = made(RESNET)
    apart = [
        replace(each, weight_gradient_s=tuple(s / 2 for s in each.backward_s))
        for each in profile.costs[0].operators
    ]
    split = replace(profile, costs=(replace(profile.costs[0], operators=tuple(apart)),))
    counts = [
        len(measured_times(read_sources(saved(tmp_path, each))[0], "core", by_size=True))
        for each in (profile, split)
    ]
    kinds = [op.kind for op in RESNET.operators]
    # the first convolution reads the image, which has no gradient: one time, apart or not
    assert counts[1] - counts[0] == len(SIZES) * (kinds.count("conv2d") - 1 + kinds.count("linear"))


def change(**fields: Any) -> Callable[[Profile], Profile]:
    return lambda profile: replace(profile, **fields)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (change(precision="fp16"), "was measured in fp16, not fp32"),
        (change(provenance=Provenance(model="bert")), "captured module have no dims"),
        (
            lambda p: replace(p, costs=(replace(p.costs[0], device_type="other"),)),
            "was measured on other, not on 'core'",
        ),
        (
            lambda p: replace(
                p,
                graph=replace(
                    p.graph,
                    operators=tuple(msgspec.structs.replace(op, dims={}, axes={}) for op in p.graph.operators),
                ),
            ),
            "operator 'conv1' has no dims",
        ),
    ],
)
def test_profiles_that_teach_nothing(tmp_path: Path, spoil: Callable[[Profile], Profile], reason: str) -> None:
    with pytest.raises(PipebenchError, match=reason):
        run(RESNET, (1,), CORE, calibrate=saved(tmp_path, spoil(made(RESNET, (1,)))))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PipebenchError, match=r"cannot read .*nothing.json': No such file"):
        run(RESNET, (1,), CORE, calibrate=str(tmp_path / "nothing.json"))


def test_devices_that_all_files_know(tmp_path: Path) -> None:
    files = saved(tmp_path, made(RESNET, (1,)), made(RESNET, (2,)))
    assert fitting.device_types(AnalyticOptions(calibrate=files)) == ("core",)
    assert fitting.device_types(AnalyticOptions()) == ()
