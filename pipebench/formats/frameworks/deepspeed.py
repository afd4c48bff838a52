"""A plan as a subclass of DeepSpeed's PipelineModule, which offers no other way to pass bounds."""

from itertools import accumulate

from pipebench.domain.errors import PipebenchError
from pipebench.formats.frameworks.arrangement import Arrangement, CannotExpress
from pipebench.formats.frameworks.launch import deepspeed_launch

REVISION = "DeepSpeed edaa72212 (the subclass follows its code, it was not run)"


def bounds(made: Arrangement) -> list[int]:
    """Stages + 1 bounds in the list of layers, one layer an operator. Raises CannotExpress."""
    if made.virtual > 1:
        raise CannotExpress(f"{made.virtual} stages a rank: DeepSpeed runs one")
    if not made.stands("in-turn"):
        raise CannotExpress("stages are not on consecutive ranks")
    return [0, *accumulate(map(len, made.stages))]


def check_bounds(listed: list[int], layers: int, stages: int) -> None:
    """Raises PipebenchError unless they go from 0 to `layers` and never back."""
    if len(listed) != stages + 1 or listed[0] != 0 or listed[-1] != layers or listed != sorted(listed):
        raise PipebenchError(f"bounds {listed} are not {stages + 1} that go from 0 to {layers} and never back")


def text(made: Arrangement) -> str:
    """A Python snippet."""
    made.require_whole_weights("DeepSpeed runs no pipeline with it")
    made.require_plain_products()
    listed = bounds(made)
    check_bounds(listed, len(made.graph.operators), made.pipeline)
    zero = "# zero_optimization: stage 1\n" if made.shards_optimizer else ""
    names = ", ".join(operator.name for operators in made.operators for operator in operators[:1])
    return (
        "from deepspeed.pipe import PipelineModule\n\n\n"
        "class PlannedPipelineModule(PipelineModule):\n"
        f"    PARTS = {listed}  # first layers: {names}\n\n"
        '    def _partition_layers(self, method="uniform"):\n'
        "        self.parts = list(self.PARTS)\n"
        "        stage = self._topo.get_coord(self.global_rank).pipe\n"
        "        self._set_bounds(start=self.parts[stage], stop=self.parts[stage + 1])\n\n\n"
        f"# num_stages={made.pipeline}; layers: {len(made.graph.operators)}, one for each operator of the plan\n"
        f"# train_batch_size {made.problem.mini_batch}, train_micro_batch_size_per_gpu {made.micro_batch}, "
        f"gradient_accumulation_steps {made.rounds}\n"
        f"# tensor parallel {made.tensor_parallel}, data parallel {made.data_parallel}, recompute "
        f"{made.recompute}\n" + "".join(f"# {line}\n" for line in deepspeed_launch(made).lines()) + f"{zero}"
        "# the schedule is DeepSpeed's own 1F1B; not together with ZeRO-2 or ZeRO-3\n"
    )
