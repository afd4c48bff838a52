"""Plans and framework layouts made elsewhere: each takes part in a comparison like a planner whose
search took no time.
"""

from pathlib import Path

from pipebench.algorithms.chains.stage_row import not_offered, recompute_notices, stage_row, way
from pipebench.bench.components import Ready
from pipebench.check import check_plan
from pipebench.defaults import scheduler_for, schedulers
from pipebench.documents.document import PlannedProblem
from pipebench.documents.printable import in_unicode
from pipebench.domain.errors import InvalidValue, PipebenchError, UnsupportedProblem
from pipebench.domain.placement import PlacementKind, pipelines_of_kind
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.value import digest
from pipebench.formats.frameworks.layouts import MEGATRON, ForeignLayout
from pipebench.hooks.context import Context
from pipebench.hooks.descriptors import Capabilities, NoOptions, Planner
from pipebench.hooks.discovery import Provider


def ready_plan(path: str, planned: PlannedProblem) -> Ready:
    """The plan as a planner. Its schedule counts only on the very problem that it was made for."""

    def call(problem: Problem, context: Context) -> PlanResult:
        del context
        if problem.problem_id == planned.problem.problem_id:
            return PlanResult(plan=planned.plan, schedule=planned.schedule)
        verdict = check_plan(problem, planned.plan)
        theirs, ours = planned.problem.profile.name, problem.profile.name
        whose = f"{theirs}, not for {ours}" if theirs != ours else f"another problem of {ours}"
        if verdict.status == "invalid" and verdict.witness is not None:
            raise InvalidValue(
                f"planned for {whose}: {verdict.witness.message}",
                "plan again, or give the options that it was planned with",
            )
        return PlanResult(plan=planned.plan, notices=(f"planned for {whose}",))

    mode, plan = planned.problem.regime.mode, planned.plan
    own = scheduler_for(mode, plan.placement, plan.takes_turns)
    component = Planner(
        name=in_unicode(Path(path).name),
        summary="a plan made elsewhere",
        load="",
        capabilities=Capabilities(regimes=(mode,), expert_parallel=True, context_parallel=True),
        default_scheduler=schedulers() | {mode: own},
    )
    return Ready(
        component.name,
        component,
        NoOptions(),
        lambda: call,
        Provider("user", "", "file"),
        here=True,
        source=digest(planned),
    )


def ready_layout(layout: ForeignLayout) -> Ready:
    """The layout as a planner: its stages, on degrees that are pinned or follow from the number of devices.

    --pp: ranks (default: one a stage); --tp (default 1); --dp (default: what devices are left for); the
    micro-batch is one sample a replica unless the pins say more. Stages run under the scheduler of their
    placement, as the framework runs them. Where the user names a scheduler that takes no such placement, they
    stand as it takes them. What does not suit the model is an UnsupportedProblem with the reason.
    """

    def call(problem: Problem, context: Context) -> PlanResult:
        pins = problem.pins
        try:
            contents = layout.contents(problem.profile.graph, pins.pipeline)
        except PipebenchError as error:
            raise UnsupportedProblem(error.message, error.hint) from None
        kind = _placement(layout, context)
        pipelines = pipelines_of_kind(kind) or 1
        pipeline = pins.pipeline or len(contents) // (pins.virtual_stages or (2 if kind == "v" else 1))
        tensor = pins.tensor_parallel or 1
        pinned = (pins.data_parallel or 0) // pipelines
        replicas = pinned or max(1, problem.cluster.size // (tensor * pipeline))
        micro_batch = pins.micro_batch or replicas * (pins.micro_batch_size or 1)
        if problem.mini_batch % (micro_batch * pipelines):
            raise UnsupportedProblem(
                f"micro-batches of {micro_batch} samples ({replicas} replicas) do not divide {problem.mini_batch}",
                "pin --dp and --micro-batch, or --micro-batch-size",
            )
        run = way(problem, tensor, pins.recompute)
        if run is None:
            raise not_offered("the layout", problem, tensor)
        if kind == "v" and len(contents) != 2 * pipeline:
            raise UnsupportedProblem(
                f"{len(contents)} stages on {pipeline} ranks are no V, which has two a rank",
                f"pin --pp {len(contents) // 2}, or name another schedule",
            )
        if len(contents) % pipeline:
            raise UnsupportedProblem(
                f"{len(contents)} stages on {pipeline} ranks: no rank may have more than another", "pin --pp"
            )
        plan = stage_row(
            problem,
            contents,
            run,
            data_parallel=replicas,
            pipeline=pipeline,
            micro_batch=micro_batch,
            placement=kind,
        )
        notices = (
            f"read as TP {tensor}, DP {replicas}, PP {pipeline}, micro-batch {micro_batch}",
            *recompute_notices(problem, run),
        )
        name = "" if context.scheduler else scheduler_for("sync", kind)
        schedule = context.schedule(name, problem, plan) if name else None
        return PlanResult(plan=plan, schedule=schedule, scheduler=name, notices=notices)

    component = Planner(
        name=layout.name if layout.name.startswith(MEGATRON) else in_unicode(Path(layout.name).name),
        summary=f"a {layout.kind} layout",
        load="",
        capabilities=Capabilities(
            regimes=("sync",),
            replicas=True,
            tensor_parallel=True,
            recompute=True,
            expert_parallel=True,
            context_parallel=True,
            sharding_groups=True,
        ),
        calls=tuple(scheduler_for("sync", placement) for placement in ("apart", "in-turn", "v")),
    )
    return Ready(
        component.name,
        component,
        NoOptions(),
        lambda: call,
        Provider("user", "", "file"),
        here=True,
        source=digest([layout.kind, layout.text, layout.placement]),
    )


def _placement(layout: ForeignLayout, context: Context) -> PlacementKind:
    """How the stages stand: as the layout says, or as the scheduler takes them that the user names."""
    shared = [kind for kind in context.placements if kind not in ("apart", "listed")]
    return layout.placement if not shared or layout.placement in shared else shared[0]
