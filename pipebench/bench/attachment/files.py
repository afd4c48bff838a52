"""What is attached to a row: traces of ranks, or the log of a framework."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipebench.bench.accuracy.run import Run
from pipebench.bench.calibration.sources import log_run
from pipebench.costs.transformer import LAYER
from pipebench.defaults import ONE_F_ONE_B
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.formats.chrome_trace import RankTrace, parse_chrome_trace
from pipebench.formats.files import read_file


@dataclass(frozen=True, slots=True)
class AttachedFiles:
    """log: the run of a framework's log, None where there is none. traces: one a rank."""

    log: Run | None
    traces: tuple[RankTrace, ...]


def attached_files(names: Sequence[str], problem: Problem, plan: Plan) -> AttachedFiles:
    """Read logs and traces; the first bytes say which is which.

    Raises PipebenchError for a file that is neither, for several logs, and for the log of another run.
    """
    device = problem.cluster.devices[0]
    logs: list[Run] = []
    traces: list[RankTrace] = []
    for name in names:
        data = read_file(name)
        log = log_run(data, name, device)
        if log is None:
            traces.append(parse_chrome_trace(data, name))
        else:
            logs.append(log)
    if len(logs) > 1:
        raise PipebenchError(f"{len(logs)} logs, a row has one run", "attach one after the other")
    for run in logs:
        require_same_run(run, problem, plan)
    return AttachedFiles(logs[0] if logs else None, tuple(traces))


def require_same_run(run: Run, problem: Problem, plan: Plan) -> None:
    """Raise PipebenchError where a log says another run than the plan is of, with all that differs."""
    other = [
        f"{what} {said}, the plan has {', '.join(map(str, sorted(there)))}"
        for what, said, there in _compared(run, problem, plan)
        if said is not None and there and said not in there
    ]
    if other:
        raise PipebenchError(
            f"{run.source}: the log of another run: {'; '.join(other)}",
            "attach it to a row of its own layout: --tp, --pp, --dp and --micro-batch-size pin one",
        )


def _compared(run: Run, problem: Problem, plan: Plan) -> Iterator[tuple[str, int | None, set[int]]]:
    """What both say: its name, the log's figure, and those of the plan's stages."""
    stages = plan.stages
    row = len({stage.devices for stage in stages[: plan.pipeline_length]})
    stages_of_a_device = run.vpp or (1 if run.schedule == ONE_F_ONE_B else None)
    layers = sum(operator.kind == LAYER for operator in problem.profile.graph.operators)
    yield "devices", run.gpus, {plan.devices_used}
    yield "mini-batch", run.gbs, {problem.mini_batch}
    yield "tensor parallelism", run.tp, {stage.tensor_parallel for stage in stages}
    yield "devices in a row", run.pp, {row}
    yield "stages of a device", stages_of_a_device, {-(-plan.pipeline_length // row)}
    yield "replicas", run.dp, {stage.data_parallel * plan.all_pipelines for stage in stages}
    yield "micro-batch of a replica", run.mbs, {-(-stage.micro_batch // stage.sharers) for stage in stages}
    yield "layers", run.layers, {layers} if layers else set()
