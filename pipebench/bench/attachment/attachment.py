"""A row beside a run that somebody else launched: the measured time, its ranks, and what would explain it."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipebench.bench.attachment.explanation import LARGEST_FACTOR, Explanation, explain_step
from pipebench.bench.attachment.files import attached_files
from pipebench.bench.attachment.rank_parts import RankParts, known_factors, rank_parts
from pipebench.bench.attachment.ranks import AttachedStage, RankGap, attach_ranks
from pipebench.bench.score import prediction_error
from pipebench.bench.services import HostServices
from pipebench.bench.store import Results
from pipebench.check import require_ordered
from pipebench.domain.errors import PipebenchError, UnsupportedProblem
from pipebench.domain.row import Row
from pipebench.simulation.step_parts import PartedStep


@dataclass(frozen=True, slots=True)
class Attachment:
    """measured_s: of one iteration. source: how it was read. error: (simulated - measured) / measured.

    ranks, stages, start_skew_s: what traces say (AttachedRanks). rank_parts: what each traced rank's iteration
    consists of. explanation: which part would explain the
    difference; None for a plan that has no step, which `unexplained` says.
    """

    measured_s: float
    source: str
    simulated_s: float | None
    error: float | None
    start_skew_s: float | None
    ranks: tuple[RankGap, ...]
    stages: tuple[AttachedStage, ...]
    rank_parts: tuple[RankParts, ...]
    explanation: Explanation | None
    unexplained: str


def attach(services: HostServices, results: Results, row: Row, files: Sequence[str], warmup: int) -> Attachment:
    """The row beside the files of a run: traces of its ranks, or a log. warmup: iterations of traces to leave out.

    Raises PipebenchError for a row without a plan, and for files of another run.
    """
    if row.plan_id is None or row.schedule_id is None:
        raise PipebenchError(f"the row of {row.planner} has no plan", f"its status is {row.status}")
    problem = results.behind.problem(row.problem_id)
    plan, schedule = results.behind.plan(row.plan_id), results.behind.schedule(row.schedule_id)
    require_ordered(problem, plan, schedule)
    given = attached_files(files, problem, plan)
    ranks = None
    if given.traces and problem.regime.context_ranks > 1:
        raise PipebenchError(
            f"{problem.regime.context_ranks} ranks share out each sequence, whose traces are not understood",
            "attach the log of the run",
        )
    if given.traces:
        simulated = services.simulate(problem, plan, schedule)
        ranks = attach_ranks(plan, simulated, row.mini_batch, given.traces, warmup)
    if given.log is not None:
        measured_s, source = given.log.iter_s, given.log.how_read
    else:
        assert ranks is not None
        measured_s, source = ranks.measured_s, "slowest rank"
    explanation, unexplained = None, ""
    parts: tuple[RankParts, ...] = ()
    try:
        step = PartedStep(problem, plan, schedule)
        parts = rank_parts(plan, step.devices, given.traces, warmup)
        explanation = explain_step(problem, plan, schedule, measured_s, known_factors(parts, LARGEST_FACTOR))
    except UnsupportedProblem as error:
        unexplained = error.message
    return Attachment(
        measured_s=measured_s,
        source=source,
        simulated_s=row.simulated_s,
        error=prediction_error(row.simulated_s, measured_s),
        start_skew_s=None if ranks is None else ranks.start_skew_s,
        ranks=() if ranks is None else ranks.ranks,
        stages=() if ranks is None else ranks.stages,
        rank_parts=parts,
        explanation=explanation,
        unexplained=unexplained,
    )
