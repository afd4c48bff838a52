"""A log is held against a plan: what is run again, and plans that no framework runs."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from pipebench.bench.attachment.files import attached_files
from pipebench.bench.attachment.same_run import require_same_run
from pipebench.bench.calibration.megatron_log import megatron_run
from pipebench.domain.errors import PipebenchError
from tests.bench.attachment.logged_row import DEVICE, LoggedRun, logged_run
from tests.bench.calibration.logs import megatron

FULL = {"recompute_granularity": "full", "recompute_method": "uniform"}


def test_a_file_that_is_neither_trace_nor_log_is_told_as_neither(tmp_path: Path) -> None:
    made, path = logged_run(), tmp_path / "train.log"
    path.write_text("epoch 1: loss 2.5\n")
    with pytest.raises(PipebenchError, match="neither a trace of torch's profiler nor a log") as error:
        attached_files([str(path)], made.problem, made.plan)
    assert "Megatron-LM" in str(error.value.hint)
    path.write_bytes(megatron().encode("utf-16"))
    log = attached_files([str(path)], made.problem, made.plan).log
    assert log is not None
    assert log.iter_s == pytest.approx(0.1005)


def require_same(made: LoggedRun, **said: object) -> None:
    require_same_run(megatron_run(megatron(**said), "train.log", DEVICE), made.problem, made.plan)


def again_by_stage(made: LoggedRun, stages: int) -> LoggedRun:
    """The first stages run again as a whole."""
    every = made.plan.stages
    changed = (*(replace(stage, recompute="stage") for stage in every[:stages]), *every[stages:])
    return made._replace(plan=replace(made.plan, stages=changed))


def test_a_group_of_all_layers_of_a_stage_is_the_stage() -> None:
    made = again_by_stage(logged_run(), 2)
    require_same(made, **FULL, recompute_num_layers=2)
    with pytest.raises(PipebenchError, match="recomputation full, the plan has stage"):
        require_same(made, **FULL, recompute_num_layers=1)
    small = again_by_stage(logged_run(num_layers=2), 2)
    require_same(small, num_layers=2, **FULL, recompute_num_layers=1)


def test_selective_recomputation_of_megatron_is_in_the_profile() -> None:
    require_same(logged_run(), recompute_granularity="selective")
    with pytest.raises(PipebenchError, match="recomputation selective, the plan has full"):
        require_same(logged_run(**FULL), recompute_granularity="selective")


def test_modules_that_run_again_are_as_the_profile_says() -> None:
    made = logged_run(recompute_granularity="selective", recompute_modules=("mlp", "core_attn"))
    assert made.problem.pins.recompute == "selective"
    assert made.problem.profile.provenance.modules == ("core_attn", "mlp")
    require_same(made, recompute_granularity="selective", recompute_modules=["core_attn", "mlp"])
    with pytest.raises(
        PipebenchError, match=r"recomputation selective \(mlp\), the plan has selective \(core_attn"
    ):
        require_same(made, recompute_granularity="selective", recompute_modules=["mlp"])


def test_a_plan_that_no_framework_runs_has_no_log() -> None:
    with pytest.raises(PipebenchError, match="no framework runs this plan: some stages or layers recompute and"):
        require_same(again_by_stage(logged_run(), 1))


def test_products_are_as_the_profile_says() -> None:
    made = logged_run()
    narrow = replace(made.problem.profile.provenance, products="fp8")
    told = made._replace(problem=replace(made.problem, profile=replace(made.problem.profile, provenance=narrow)))
    require_same(told, fp8="hybrid")
    with pytest.raises(PipebenchError, match="precision of products bf16, the plan has fp8"):
        require_same(told)


def test_a_vocabulary_is_compared_as_it_is_padded() -> None:
    require_same(logged_run(), padded_vocab_size=50257)
    with pytest.raises(PipebenchError, match="padded vocabulary 50688, the plan has 50432"):
        require_same(logged_run(), padded_vocab_size=50433)


def test_experts_are_gated_whatever_their_model_is_called() -> None:
    """What names the model of a log may be a model of experts, and its layers are no Llama's."""
    made = logged_run(swiglu=True)
    said = megatron_run(megatron(swiglu=True), "train.log", DEVICE)
    require_same_run(replace(said, model="Qwen3-30B-A3B"), made.problem, made.plan)
    with pytest.raises(PipebenchError, match="a gated feed-forward on, the plan has off"):
        require_same_run(replace(said, model="Qwen3-30B-A3B"), logged_run().problem, logged_run().plan)
