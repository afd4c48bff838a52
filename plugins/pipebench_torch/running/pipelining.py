"""A chain of stages run by torch.distributed.pipelining, each process in the order of the plan's schedule."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
from torch.utils.checkpoint import checkpoint

from pipebench_torch.modules.models import learnt_from
from pipebench_torch.placing.orders import Task
from pipebench_torch.running.runner import Record, Runner
from pipebench_torch.running.stage import StageRun


class ChainRunner(Runner):
    """A Runner that leaves the order, the messages and the backward to torch.distributed.pipelining.

    Its runtime numbers micro-batches in the order in which the last stage runs them: number n is micro-batch
    labels[n]. It does not report messages, so records have none.
    """

    labels: list[int]

    def prepare(self, order_of: Mapping[int, Sequence[Task]]) -> None:
        """Weights and inputs, the stages as modules, and the order of every process."""
        super().prepare(order_of)
        last = self.chain[-1]
        self.labels = [
            m for tasks in order_of.values() for stage, m, kind in tasks if (stage, kind) == (last, "F")
        ]
        self._record, self._watching = Record(), False
        parts = [
            _Part(self, self.chain.index(stage), run) for stage, run in sorted(self.stages.items(), key=self._at)
        ]
        self._runtime = _PipelineScheduleRuntime(parts, len(self.labels), loss_fn=_loss, scale_grads=False)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "order.csv"
            file.write_text("".join(self._row(order_of[rank]) for rank in sorted(order_of)))
            self._runtime._load_csv(str(file))

    def _at(self, item: tuple[int, StageRun]) -> int:
        return self.chain.index(item[0])

    def _row(self, tasks: Sequence[Task]) -> str:
        cells = [f"{self.chain.index(s)}{kind}{self.labels.index(m)}" for s, m, kind in tasks if kind != "R"]
        return ",".join(cells) + "\n"

    def run(self, watch_memory: bool = False) -> Record:
        """Run all tasks once. Gradients of the stages are replaced."""
        self._forget()
        for run in self.stages.values():
            for weight in run.versions[0].values():
                weight.grad = None
        record = self._record = Record()
        self._watching = watch_memory
        self._begin(record)
        self._runtime.step(target=torch.zeros(len(self.labels)), return_outputs=False)
        self.machine.settle()
        record.ended = self.machine.mark()
        for run in self.stages.values():
            found = {name: weight.grad for name, weight in run.versions[0].items()}
            run.gradients[0] = {name: gradient for name, gradient in found.items() if gradient is not None}
        self._add_reductions(record)
        return record

    def run_task(self, task: Task, work: Callable[[], Any]) -> Any:
        """Run one task of the schedule and record it."""
        stage, micro_batch, kind = task
        name = f"{kind} of stage {stage}, micro-batch {micro_batch}"
        self.status.say(f"running {name}")
        if self._watching:
            self.machine.reset_peak()
            before = self.machine.memory_bytes()
        begin = self.machine.mark()
        made = work()
        self._record.tasks.append((task, begin, self.machine.mark()))
        if self._watching:
            self.machine.settle()
            self._record.memory.append((max(before, self.machine.peak_bytes()), self.machine.memory_bytes()))
        self.status.say(f"waiting after {name}")
        return made

    def _add_reductions(self, record: Record) -> None:
        """Add a task R of no time for each stage without replicas, which has no gradients to sum."""
        for position, task in enumerate(self.tasks):
            if task[2] == "R":
                _, _, end = record.tasks[position - 1]
                record.tasks.insert(position, (task, end, end))
                if record.memory:
                    after = record.memory[position - 1][1]
                    record.memory.insert(position, (after, after))

    def model_inputs(self, run: StageRun, first: int, size: int) -> dict[int, Tensor]:
        """The inputs of the model that a stage reads, of some samples."""
        found = {
            tensor: self._inputs[tensor][first : first + size].detach().clone() for tensor in run.model_inputs
        }
        for tensor, value in found.items():
            value.requires_grad_(learnt_from(self.model.graph, tensor, value))
        return found


def _loss(output: Tensor, _: Tensor) -> Tensor:
    """The loss for the runtime: the last stage has made it already."""
    return output


class _Module(nn.Module):  # type: ignore[misc]
    """One stage as a module: from tensors of the stage before it to those of the stage after it, or the loss."""

    def __init__(self, runner: ChainRunner, run: StageRun, last: bool) -> None:
        super().__init__()
        self.runner, self.run_, self.last = runner, run, last
        self.weights = nn.ParameterList(run.versions[0][name] for name in run.parameters)
        run.versions[0] = dict(zip(run.parameters, self.weights, strict=True))
        self.micro_batch = 0

    def forward(self, *received: Tensor) -> Any:
        """Run the micro-batch that was set."""
        if self.run_.stage.recompute == "stage":
            return checkpoint(self._compute, *received, use_reentrant=False)
        return self._compute(*received)

    def _compute(self, *received: Tensor) -> Any:
        run = self.run_
        size = run.stage.micro_batch
        first = self.micro_batch * size
        inputs = dict(zip(run.received, received, strict=True)) | self.runner.model_inputs(run, first, size)
        outputs, losses = run.compute(inputs, 0, first, (size,))
        if self.last:
            return torch.stack([sum(losses[1:], losses[0])])
        return tuple(_detachable(outputs[tensor]) for tensor in run.sent)


def _detachable(value: Tensor) -> Tensor:
    """A tensor that is no view: after a split backward the runtime detaches outputs in place, which views do not
    allow.
    """
    return value.clone() if value._is_view() or value.is_leaf else value


class _Part(PipelineStage):  # type: ignore[misc]
    """A stage of the runtime that records when it computes."""

    def __init__(self, runner: ChainRunner, position: int, run: StageRun) -> None:
        last = position == len(runner.chain) - 1
        device = runner.machine.device

        def example(tensors: list[int]) -> tuple[Tensor, ...]:
            size = run.stage.micro_batch
            return tuple(runner.model.buffer(t, size).to(device).requires_grad_() for t in tensors)

        loss = torch.empty(1, device=device, dtype=runner.model.dtype)
        super().__init__(
            _Module(runner, run, last),
            position,
            len(runner.chain),
            device,
            input_args=example(run.received),
            output_args=(loss.requires_grad_(),) if last else example(run.sent),
        )
        self._runner, self._stage = runner, runner.chain[position]

    def _get_init_p2p_neighbors_ops(self) -> list[Any]:
        """Leave out sends to this process itself: torch 2.11 has them where two neighbours share it, and gloo
        cannot.
        """
        own = self._runner.rank
        return [each for each in super()._get_init_p2p_neighbors_ops() if each.group_peer != own]

    def forward_one_chunk(self, fwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        """Task F."""
        self.submod.micro_batch = self._runner.labels[fwd_chunk_id]
        return self._run_task(
            "F", fwd_chunk_id, lambda: PipelineStage.forward_one_chunk(self, fwd_chunk_id, *args, **kwargs)
        )

    def backward_one_chunk(
        self, bwd_chunk_id: int, loss: Any = None, full_backward: bool = True, last_backward: bool = False
    ) -> Any:
        """Task B, or I of a split backward."""
        self.submod.micro_batch = self._runner.labels[bwd_chunk_id]
        kind = "B" if full_backward else "I"
        more = {"loss": loss, "full_backward": full_backward, "last_backward": last_backward}
        return self._run_task(
            kind, bwd_chunk_id, lambda: PipelineStage.backward_one_chunk(self, bwd_chunk_id, **more)
        )

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> Any:
        """Task W."""
        return self._run_task(
            "W",
            bwd_chunk_id,
            lambda: PipelineStage.backward_weight_one_chunk(self, bwd_chunk_id, last_backward=last_backward),
        )

    def _run_task(self, kind: str, number: int, work: Callable[[], Any]) -> Any:
        return self._runner.run_task((self._stage, self._runner.labels[number], kind), work)
