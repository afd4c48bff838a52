"""The profile as a whole: what it refuses, that it repeats, that it survives a file."""

import pytest
from msgspec.structs import replace

from pipebench.documents.document import decode, encode
from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.formats.devices import load_device
from pipebench.formats.frameworks.facts import load_framework
from pipebench.hooks.context import Context, ProfileRequest
from pipebench_analytic.plugin import AnalyticOptions
from pipebench_analytic.profiler import profile
from tests.analytic.profiling import V100, costs_of, run
from tests.models.zoo import model

LAYER = model("transformer", layers=1, residual=True)


def test_it_repeats_and_survives_a_document() -> None:
    first, second = run(LAYER, [1, 3]), run(LAYER, [1, 3])
    assert encode("profile", first) == encode("profile", second)
    assert decode(encode("profile", first), "profile", "here") == first


def test_every_device_type_has_costs() -> None:
    fast = replace(V100, name="fast", memory_bandwidth_bytes_s=9e15, peak_flops={"fp32": 1e18})
    request = ProfileRequest(devices=(V100, fast), micro_batches=(1, 2))
    made = profile(LAYER, Context(options=AnalyticOptions(), request=request))
    assert made.device_types == ("V100", "fast")
    slow, quick = (made.on(name).operators[0].forward_s[0] for name in made.device_types)
    assert quick < slow
    assert made.provenance.device == "V100, fast"


def test_provenance_names_the_framework_and_the_measured_kernels() -> None:
    graph = model("llm", layers=1, hidden=512, heads=8, ffn=2048, sequence=128, vocab=1024)
    said: list[str] = []
    for device in ("A100-SXM4-80GB", "V100-SXM2-16GB"):
        request = ProfileRequest(
            devices=(load_device(device),),
            micro_batches=(1,),
            precision="fp16",
            framework=load_framework("megatron"),
        )
        lines = profile(graph, Context(options=AnalyticOptions(), request=request)).provenance.lines
        assert sum(device in line for line in lines) == 1
        said += lines
    assert "priced as megatron runs it; kernels measured on A100-SXM4-80GB" in said
    assert "priced as megatron runs it" in said
    assert "kernels of V100-SXM2-16GB are not calibrated: peak rates" in said


@pytest.mark.parametrize("options", [{"attention": "flash"}, {"products": "fp8"}, {"sequence_parallel": "on"}])
def test_what_counts_with_a_framework_is_refused_without(options: dict[str, str]) -> None:
    with pytest.raises(PipebenchError, match="counts with a framework"):
        run(LAYER, **options)


def test_provenance_holds_the_settings() -> None:
    made = run(LAYER, r_half=64)
    assert "r_half=64" in made.provenance.profiler
    assert "charged once" in made.provenance.saved


def test_figures_have_twelve_digits() -> None:
    for costs in run(LAYER, [1, 7]).costs[0].operators:
        for seconds in (*costs.forward_s, *costs.backward_s, *costs.weight_gradient_s):
            assert seconds == float(f"{seconds:.12g}")


def test_only_contractions_have_a_workspace() -> None:
    made = run(LAYER, workspace_bytes=77)
    assert costs_of(made, "layers.0.linear1").workspace_bytes == 77
    assert costs_of(made, "layers.0.add1").workspace_bytes == 0


def test_half_precision_uses_its_rate_and_its_bytes() -> None:
    made = run(LAYER, precision="fp16")
    assert made.precision == "fp16"
    assert sum(made.graph.parameter_bytes.values()) * 2 == sum(LAYER.parameter_bytes.values())
    assert costs_of(made, "layers.0.linear1").forward_s < costs_of(run(LAYER), "layers.0.linear1").forward_s


def test_a_precision_without_a_rate_is_refused() -> None:
    with pytest.raises(PipebenchError, match=r"'V100' has no peak rate in bf16.*fp16, fp32"):
        run(LAYER, precision="bf16")


@pytest.mark.parametrize("missing", [{"memory_bandwidth_bytes_s": 0.0}, {"peak_flops": {"fp32": 0.0}}])
def test_a_device_without_rates_is_refused(missing: dict[str, object]) -> None:
    with pytest.raises(PipebenchError, match="needs both"):
        run(LAYER, device=replace(V100, **missing))


def test_an_unknown_kind_is_named() -> None:
    graph = OperatorGraph(name="g", operators=(Operator(name="x", kind="linaer", dims={"in_features": 1}),))
    with pytest.raises(PipebenchError, match=r"'x'.*does not know kind 'linaer'.*did you mean 'linear'"):
        run(graph)


@pytest.mark.parametrize(
    "wrong",
    [
        {"efficiency": 0.0},
        {"efficiency": 1.5},
        {"efficiency": float("nan")},
        {"r_half": -1.0},
        {"launch_s": float("inf")},
        {"workspace_bytes": -1},
        {"max_tensor_parallel": 0},
    ],
)
def test_impossible_options_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match=next(iter(wrong))):
        AnalyticOptions(**wrong)  # type: ignore[arg-type]
