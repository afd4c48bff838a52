"""The frameworks that a plan can be written for, by name."""

from collections.abc import Callable
from dataclasses import dataclass

from pipebench.defaults import FRAMEWORK_SCHEDULERS, ONE_F_ONE_B
from pipebench.domain.errors import ExitCode, PipebenchError, unknown
from pipebench.domain.framework import StepCosts
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.formats.frameworks import deepspeed, megatron, pipedream_stages, pipelining, torchtitan
from pipebench.formats.frameworks.arrangement import Arrangement, arrange
from pipebench.formats.frameworks.facts import TORCHTITAN, framework_family
from pipebench.formats.frameworks.launch import Launch, deepspeed_launch, megatron_launch, torchtitan_launch
from pipebench.formats.frameworks.requirements import CannotExpress


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """revision: of the framework, whose rules were checked. refuse(problem): raises CannotExpress where it has
    words for no plan of the problem. write(arrangement, name): the text; name: of the
    schedule file beside it. schedules: those that the framework runs such plans under by itself (empty: any, by a
    file). virtual: whether it runs several stages a rank. inside_layers: whether it can cut a layer.
    asynchronous: whether it stashes weights. comment: what starts a comment in the text ('' where it takes none).
    launch: how the framework would start a plan, None where no framework computes anything from the GPUs.
    frameworks: whose step it takes, by the names that `--framework` knows without variants (empty: nobody's).
    split_backwards: what to know where the schedule of the file splits backwards ('' where that is as any other).
    """

    name: str
    summary: str
    revision: str
    refuse: Callable[[Problem], None]
    write: Callable[[Arrangement, str], str]
    schedules: tuple[str, ...] = FRAMEWORK_SCHEDULERS
    schedule_file: bool = False
    inside_layers: bool = False
    asynchronous: bool = False
    virtual: bool = True
    comment: str = "#"
    launch: Callable[[Arrangement], Launch] | None = None
    frameworks: tuple[str, ...] = ()
    split_backwards: str = ""

    def priced_by(self, step: StepCosts | None) -> bool:
        """Whether a step is priced as this framework runs it."""
        return step is not None and framework_family(step.framework) in self.frameworks

    def schedulers(self, problem: Problem) -> tuple[str, ...]:
        """Those to choose an order from (empty: any); a user may name another."""
        return FRAMEWORK_SCHEDULERS if self.full_backwards(problem) else self.schedules

    def full_backwards(self, problem: Problem) -> bool:
        """Whether orders of full backwards come first: it is priced, and what splits them does not run there."""
        return self.split_backwards != "" and self.priced_by(problem.regime.step)

    def can_express(self, problem: Problem, plan: Plan) -> Arrangement:
        """The plan as this framework sees it. Raises CannotExpress with the reason where it has no words for
        it.
        """
        self._require_regime(problem)
        made = arrange(problem, plan, self.inside_layers)
        self.write(made, "schedule.csv")
        return made

    def require_some_plan(self, problem: Problem) -> None:
        """Raises PipebenchError where the framework has words for no plan of it: asked before a search.

        A planner of the other regime is not refused: the nearest plan of this one is offered with its own.
        """
        try:
            self.refuse(problem)
        except CannotExpress as error:
            raise PipebenchError(
                f"{self.name} can express no plan for this: {error.message}", error.hint, ExitCode.CONDITION_FAILED
            ) from None

    def _require_regime(self, problem: Problem) -> None:
        if problem.regime.mode == "async" and not self.asynchronous:
            raise CannotExpress(
                "the plan is for asynchronous updates (stashed weights)", "plan with --regime sync"
            )

    def refusal(self, problem: Problem, plan: Plan) -> str:
        """Why the plan cannot be expressed, '' where it can."""
        try:
            self.can_express(problem, plan)
        except CannotExpress as error:
            return error.message
        return ""


def _plain(write: Callable[[Arrangement], str]) -> Callable[[Arrangement, str], str]:
    return lambda made, _: write(made)


TARGETS = {
    target.name: target
    for target in (
        Target(
            name="megatron",
            summary="flags of Megatron-LM with --pipeline-model-parallel-layout",
            revision=megatron.REVISION,
            refuse=megatron.refuse,
            write=_plain(megatron.flags),
            launch=megatron_launch,
            frameworks=megatron.FRAMEWORKS,
        ),
        Target(
            name="torchtitan",
            summary="torchtitan's module_fqns_per_model_part, schedule as CSV",
            revision=torchtitan.REVISION,
            refuse=torchtitan.refuse,
            write=torchtitan.text,
            launch=torchtitan_launch,
            frameworks=(TORCHTITAN,),
            schedules=(),
            schedule_file=True,
            split_backwards=torchtitan.SPLIT_BACKWARDS,
        ),
        Target(
            name="pipelining",
            summary="split_spec of torch.distributed.pipelining",
            revision=pipelining.REVISION,
            refuse=pipelining.refuse,
            write=_plain(pipelining.text),
        ),
        Target(
            name="deepspeed",
            summary="a subclass of DeepSpeed's PipelineModule with fixed bounds",
            revision=deepspeed.REVISION,
            refuse=deepspeed.refuse,
            write=_plain(deepspeed.text),
            launch=deepspeed_launch,
            schedules=(ONE_F_ONE_B,),
            virtual=False,
            inside_layers=True,
        ),
        Target(
            name="pipedream",
            summary="PipeDream's graph.txt with stage ids",
            revision=pipedream_stages.REVISION,
            refuse=pipedream_stages.refuse,
            write=_plain(pipedream_stages.text),
            schedules=(),
            inside_layers=True,
            asynchronous=True,
            virtual=False,
            comment="",
        ),
    )
}


def target_named(name: str) -> Target:
    """Raises PipebenchError with the nearest name."""
    if name not in TARGETS:
        raise unknown("export format", name, TARGETS)
    return TARGETS[name]
