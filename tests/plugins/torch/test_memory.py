"""A stage holds what the cost model counts: what its backward needs, and one set of gradients."""

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

import torch

from pipebench.bench.problems.plugin_sources import profile_of
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, Regime
from pipebench.hooks.context import ProfileRequest
from pipebench_models.graph_builder import GraphBuilder
from pipebench_models.operators import linear
from pipebench_torch.modules.models import loss_of, loss_to_walk_back
from pipebench_torch.modules.profile_models import model_of
from pipebench_torch.placing.layout import layout_of
from pipebench_torch.placing.messages import traffic_of
from pipebench_torch.profiling.passes import passes_of
from pipebench_torch.profiling.timed_pass import SavedStorages
from pipebench_torch.running.stage import StageRun
from tests.plugins.running import services
from tests.plugins.torch.live import LiveBytes
from tests.plugins.torch.small import cpu_cluster, image, problem_of, stages

SIZE = 8


def whole_stage(problem: Problem, recompute: bool = False) -> StageRun:
    """The model as one stage, with its weights."""
    names = [op.name for op in problem.profile.graph.operators]
    plan = Plan(stages=stages([names], micro_batch=SIZE, recompute=recompute))
    model = model_of(problem, seed=0)
    run = StageRun(model, problem, plan, 0, traffic_of(model.graph, layout_of(plan, problem.mini_batch)))
    run.versions = {0: {name: model.weight(name).requires_grad_() for name in run.parameters}}
    return run


def forward(run: StageRun, micro_batch: int = 0) -> None:
    run.forward(micro_batch, {t: run.model.input(t, SIZE) for t in run.model_inputs}, 0, 0, (SIZE,))


def largest_tensor(graph: OperatorGraph) -> float:
    return SIZE * max(tensor.forward_bytes_per_sample for tensor in graph.tensors)


@pytest.mark.parametrize("recompute", [False, True])
def test_a_forward_holds_no_tensor_that_nobody_will_read(recompute: bool) -> None:
    """Of a normalisation between a convolution and a relu, neither side keeps the output for its backward."""
    run = whole_stage(problem_of(image(), 1, SIZE), recompute)
    with LiveBytes(run.versions[0].values()) as live:
        forward(run)
        left = live.now()
    assert live.peak <= left + 3 * largest_tensor(run.model.graph)
    outputs = sum(t.forward_bytes_per_sample for t in run.model.graph.tensors) * SIZE
    assert (left < 0.2 * outputs) == recompute


def test_what_a_profile_calls_saved_is_what_a_run_holds() -> None:
    problem = problem_of(image(), 1, SIZE)
    run = whole_stage(problem)
    with LiveBytes(run.versions[0].values()) as live:
        forward(run)
        left = live.now()
    ready = passes_of(model_of(problem, seed=0), SIZE, torch.device("cpu"))
    storages = SavedStorages(len(run.model.graph.operators), ready.weights.values(), torch.device("cpu"))
    ready.timed_pass().run(storages)
    assert sum(storages.saved) == pytest.approx(left, rel=0.01)


def test_the_gradient_of_an_output_is_there_beside_it() -> None:
    """A head whose output outweighs everything else, as logits do."""
    graph = GraphBuilder("head")
    linear(graph, "logits", linear(graph, "layer", graph.input("x", 16), 16), 4096)
    problem = problem_of(graph.graph(), 1, SIZE)
    run = whole_stage(problem)
    output = 4 * SIZE * 4096
    with LiveBytes(run.versions[0].values()) as live:
        forward(run)
        held = live.now()
        live.peak = 0
        run.backward(0, {}, "B", 0, (SIZE,))
    weights = 2 * 4 * 16 * 4096
    assert output <= live.peak - held <= output + weights
    ready = passes_of(model_of(problem, seed=0), SIZE, torch.device("cpu"))
    storages = SavedStorages(2, ready.weights.values(), torch.device("cpu"))
    ready.timed_pass().run(storages)
    assert storages.saved[1] == pytest.approx(output, rel=0.01)
    assert storages.workspace == [0, output]


def test_a_backward_adds_gradients_without_a_second_set_of_them() -> None:
    """Layers whose weights outweigh everything else: the gradients, and those of one layer on their way."""
    request = ProfileRequest(devices=cpu_cluster(1).types, micro_batches=(SIZE,))
    model = "transformer[layers=4,hidden=128,ffn=512,heads=4,sequence=2]"
    profile = profile_of(services().host, model, "analytic", request)
    problem = Problem(profile=profile, cluster=cpu_cluster(1), mini_batch=2 * SIZE, regime=Regime(mode="sync"))
    run = whole_stage(problem)
    sizes = [4 * weight.numel() for weight in run.versions[0].values()]
    with LiveBytes(run.versions[0].values()) as live:
        for micro_batch in (0, 1):
            forward(run, micro_batch)
            held = live.now()
            live.peak = 0
            run.backward(micro_batch, {}, "B", 0, (SIZE,))
    assert held >= sum(sizes)
    assert live.peak - held < 4 * max(sizes)
    assert live.peak - held < 0.6 * sum(sizes)
    assert live.now() == pytest.approx(sum(sizes), rel=0.05)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_gradient_of_a_loss_that_is_not_computed(dtype: torch.dtype) -> None:
    output = torch.randn(3, 5, 7, dtype=dtype, generator=torch.Generator().manual_seed(1)).requires_grad_()
    (wanted,) = torch.autograd.grad(loss_of(output, 12), output)
    (made,) = torch.autograd.grad(loss_to_walk_back(output, 12), output)
    assert torch.equal(made, wanted)
