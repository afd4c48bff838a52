"""A plan as a subclass of DeepSpeed's PipelineModule, which offers no other way to pass bounds, and its config."""

import json
from itertools import accumulate
from typing import Any

from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.recomputation import RecomputePin
from pipebench.formats.frameworks.arrangement import Arrangement
from pipebench.formats.frameworks.launch import deepspeed_launch
from pipebench.formats.frameworks.requirements import (
    CannotExpress,
    least_holders,
    require_one_group,
    require_one_stage,
    require_other_recomputation,
    require_plain_products,
    require_whole_experts,
    require_whole_sequences,
    require_whole_weights,
)

WHO = "DeepSpeed"
REVISION = "DeepSpeed edaa72212 (the subclass follows its code, it was not run)"


def bounds(made: Arrangement) -> list[int]:
    """Stages + 1 bounds in the list of layers, one layer an operator. Raises CannotExpress."""
    require_one_stage(made.virtual, WHO)
    if not made.stands("in-turn"):
        raise CannotExpress("stages are not on consecutive ranks")
    return [0, *accumulate(map(len, made.stages))]


def check_bounds(listed: list[int], layers: int, stages: int) -> None:
    """Raises PipebenchError unless they go from 0 to `layers` and never back."""
    if len(listed) != stages + 1 or listed[0] != 0 or listed[-1] != layers or listed != sorted(listed):
        raise PipebenchError(f"bounds {listed} are not {stages + 1} that go from 0 to {layers} and never back")


def refuse(problem: Problem) -> None:
    """Raises CannotExpress where no plan of the problem can be expressed."""
    pins = problem.pins
    _refuse_ways(problem.regime, least_holders(problem), pins.recompute)
    require_plain_products(problem)
    require_whole_experts(
        problem, "DeepSpeed's pipelines take no degree for that: it is set in the model's MoE layers"
    )
    require_whole_sequences(problem, "DeepSpeed's pipelines share out none")
    require_one_stage(pins.virtual_stages or 1, WHO)


def _refuse_ways(regime: Regime, holders: int, recompute: RecomputePin | None) -> None:
    require_whole_weights(regime, holders, "DeepSpeed runs no pipeline with it")
    require_one_group(regime, holders, "DeepSpeed's ZeRO-1 shares out over all replicas")
    require_other_recomputation(
        recompute,
        "selective",
        "layers recompute selectively; DeepSpeed's pipelines run whole layers again",
        "plan with --recompute full or none",
    )


def text(made: Arrangement) -> str:
    """A Python snippet: the subclass, the configuration as JSON, the model."""
    refuse(made.problem)
    _refuse_ways(made.problem.regime, made.holders, made.recompute)
    made.require_plain_products()
    listed = bounds(made)
    check_bounds(listed, len(made.graph.operators), made.pipeline)
    names = ", ".join(operator.name for operators in made.operators for operator in operators[:1])
    return (
        "import json\n\n"
        "from deepspeed.pipe import PipelineModule\n"
        "from deepspeed.runtime.pipe.topology import PipeModelDataParallelTopology\n\n\n"
        "class PlannedPipelineModule(PipelineModule):\n"
        f"    PARTS = {listed}  # first layers: {names}\n\n"
        '    def _partition_layers(self, method="uniform"):\n'
        "        self.parts = list(self.PARTS)\n"
        "        stage = self._topo.get_coord(self.global_rank).pipe\n"
        "        self._set_bounds(start=self.parts[stage], stop=self.parts[stage + 1])\n\n\n"
        f'config = json.loads("""\n{json.dumps(configuration(made), indent=2)}\n""")\n'
        "model = PlannedPipelineModule(\n"
        f"    layers=layers,  # {len(made.graph.operators)}, one for each operator of the plan\n"
        f"    topology=PipeModelDataParallelTopology(num_pp={made.pipeline}, num_mp={made.tensor_parallel}, "
        f"num_dp={made.data_parallel}),\n"
        "    loss_fn=loss_fn,\n"
        f"{_checkpoints(made)})\n"
        + "".join(f"# {line}\n" for line in deepspeed_launch(made).lines())
        + _gradients(made.problem.regime)
        + "# the schedule is DeepSpeed's own 1F1B; not together with ZeRO-2 or ZeRO-3\n"
    )


def configuration(made: Arrangement) -> dict[str, Any]:
    """What `deepspeed.initialize` takes as config: batch, precision, ZeRO."""
    regime = made.problem.regime
    found: dict[str, Any] = {
        "train_batch_size": made.problem.mini_batch,
        "train_micro_batch_size_per_gpu": made.micro_batch,
        "gradient_accumulation_steps": made.rounds,
        "zero_optimization": {"stage": int(regime.shards_optimizer)},
    }
    if regime.precision != "fp32":
        found[regime.precision] = {"enabled": True}
        if regime.shards_optimizer:
            found["data_types"] = {"grad_accum_dtype": regime.gradient_precision or regime.precision}
    if made.recompute == "stage":
        found["pipeline"] = {"use_reentrant": False}
    return found


def _checkpoints(made: Arrangement) -> str:
    """By default PipelineModule keeps everything.

    A reentrant checkpoint, its usual one, loses the gradients of what reads token ids (`_is_checkpointable`). So
    layers are named, and whole stages, of which the first reads them, have the other kind.
    """
    if made.recompute == "full":
        return (
            "    activation_checkpoint_interval=1,\n"
            "    checkpointable_layers=[Layer.__name__],  # the class of your layers: nothing else runs again\n"
        )
    if made.recompute == "stage":
        return f"    activation_checkpoint_interval={max(map(len, made.stages))},  # whole stages\n"
    return ""


def _gradients(regime: Regime) -> str:
    """Without ZeRO DeepSpeed refuses gradients of another precision than the weights'
    (`_do_optimizer_sanity_check`).
    """
    kept = regime.gradient_precision or regime.precision
    if regime.shards_optimizer or kept == regime.precision:
        return ""
    return (
        f"# gradients: the plan counts {kept}; without ZeRO DeepSpeed keeps them in {regime.precision} as the "
        "weights (plan with --optimizer-sharding zero1)\n"
    )
