"""Every answer is a valid plan or an honest refusal, and what a planner claims agrees with its plans."""

from collections.abc import Iterator

from pipebench.bounds.time import work_ns
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.testing import cases
from pipebench.testing.calls import Answer
from pipebench.testing.planners.questions import AGAIN, EDGES, FIRST, Interview, Question, refusal_of
from pipebench.testing.probe import CHANGED
from pipebench.testing.sessions import BROKEN
from pipebench.testing.verdicts import Waived, first_failure


def case(interview: Interview, name: str) -> None:
    """A valid plan on one of the small problems, or a refusal with a reason."""
    names = (name, FIRST, AGAIN) if name == "chain" else (name,)
    asked = [(q, a) for q, a in interview.first if q.about in names]
    first_failure(_wrong(interview, q, a) for q, a in asked)
    refused = [a.reason for q, a in asked if a.ending != "returned"]
    if len(refused) == len(asked):
        raise Waived(f"refused: {refused[0]}")


def infeasible(interview: Interview) -> None:
    """Where provably nothing fits, and not everywhere, the answer is InfeasibleProblem (or UnsupportedProblem)."""

    def wrong() -> Iterator[str | None]:
        asked = [(q, a) for q, a in interview.first if q.about in cases.PROBLEM_CASES]
        if not any(answer.ending == "returned" for _, answer in asked):
            for question, answer in asked:
                if answer.ending == "infeasible":
                    where = f"{question.call.name}: one device holds all operators with room to spare"
                    yield f"{where}, it says infeasible: {answer.reason}"
        for question, answer in interview.first:
            if question.about == "starved":
                where = f"{question.call.name}: no plan fits devices of {cases.STARVED_BYTES} bytes"
                yield f"{where}, it returned one" if answer.ending == "returned" else _breakdown(question, answer)

    first_failure(wrong())


def memory_edge(interview: Interview) -> None:
    """A plan for devices that hold not a byte more than the plan before needs fits them, or there is none."""
    edges = [(q, a) for q, a in interview.second if q.about in EDGES]
    if not edges:
        raise Waived("it has no valid plan of the chain to take the memory from")
    first_failure(_wrong(interview, question, answer) for question, answer in edges)


def pins(interview: Interview) -> None:
    """A pin is honoured, or refused with UnsupportedProblem."""
    pinned = [(q, a) for q, a in interview.first if q.about.startswith("pin ")]
    first_failure(_wrong(interview, question, answer) for question, answer in pinned)


def _wrong(interview: Interview, question: Question, answer: Answer) -> str | None:
    if answer.ending != "returned":
        return _breakdown(question, answer)
    verdict = interview.verdict(question, answer)
    if verdict.status == "valid":
        return None
    told = f"{verdict.witness.rule}: {verdict.witness.message}" if verdict.witness else verdict.reason
    changed = f"; {CHANGED}" if CHANGED in answer.left else ""
    return f"{question.call.name}: the plan is {verdict.status}: {told}{changed}"


def _breakdown(question: Question, answer: Answer) -> str | None:
    if answer.ending not in ("refused", "deadline", *BROKEN):
        return None
    remedy = f"; {refusal_of(question.call)}" if answer.ending == "refused" and not answer.advised else ""
    return f"{question.call.name}: {answer.ending}: {answer.reason}{remedy}"


CLOSE = 1e-6
AGREED = 1e-3
"""On one device every cost model agrees: no transfer, no replica, no wait."""


def capabilities(interview: Interview) -> None:
    """No plan uses what the planner does not declare; what it declares it does not refuse."""
    declared = interview.planner.capabilities
    first_failure(
        f"{question.call.name}: the plan uses {used}, capabilities.{field} is false"
        for question, answer in interview.plans
        if answer.result is not None
        for field, used in _uses(question.problem, answer.result.plan).items()
        if not getattr(declared, field)
    )
    if interview.subject.point is None:
        first_failure(_nothing_taken(interview))
        return  # a file and a program declare nothing
    plain = ["chain", "dag"] if declared.graphs == "dag" else ["chain"]
    first_failure(
        f"{question.call.name}: declared, and refused: {answer.reason}"
        for question, answer in interview.first
        if question.about in plain and answer.ending == "unsupported"
    )


def _nothing_taken(interview: Interview) -> Iterator[str]:
    """What refuses every small problem was asked, and shows nothing: no plan of it was looked at."""
    asked = [(q, a) for q, a in interview.first if q.about in cases.PROBLEM_CASES]
    if asked and all(answer.ending == "unsupported" for _, answer in asked):
        question, answer = asked[0]
        lacking = f"all {len(asked)} small problems are refused, so that no plan was checked"
        yield f"{lacking}; {question.call.name}: {answer.reason}"


def _uses(problem: Problem, plan: Plan) -> dict[str, str]:
    """Capability to what in the plan needs it."""
    stages = plan.stages
    costs = problem.profile.on(problem.cluster.devices[0]).operators
    index = problem.profile.graph.index
    chosen = [
        costs[index[name]].alternative(choice)
        for stage in stages
        for name, choice in zip(stage.operators, stage.choice, strict=False)
        if choice
    ]
    found = {
        "replicas": any(stage.data_parallel > 1 for stage in stages) or plan.all_pipelines > 1,
        "tensor_parallel": any(stage.tensor_parallel > 1 for stage in stages),
        "recompute": any(stage.recompute != "none" for stage in stages) or any(a.recompute for a in chosen),
        "non_contiguous": plan.placement != "apart" or len({stage.devices for stage in stages}) < len(stages),
        "round_robin": plan.takes_turns,
        "per_stage_micro_batch": len({stage.micro_batch for stage in stages}) > 1,
    }
    return {field: field.replace("_", " ") for field, used in found.items() if used}


def claims(interview: Interview) -> None:
    """A claim covers the work that there is, equals the suite's time on one device, and is above its own bound."""
    first_failure(_impossible(interview))
    first_failure(_disagreeing(interview))
    if not any(_claimed_s(answer.result) for _, answer in interview.plans):
        raise Waived("it claims no cost (PlanResult.claimed_s)")


def _claimed_s(result: PlanResult | None) -> float | None:
    return None if result is None else result.claimed_s


def _impossible(interview: Interview) -> Iterator[str | None]:
    for question, answer in interview.plans:
        result = answer.result
        assert result is not None
        claimed, bound = result.claimed_s, result.lower_bound_s
        least = work_ns(question.problem) / NS_PER_S
        if claimed is not None and claimed < least * (1 - CLOSE):
            yield _flaw_text(
                question, f"claims {claimed:.6g} s, the work alone takes {least:.6g} s on all devices"
            )
        if bound is not None and claimed is not None and bound > claimed * (1 + CLOSE):
            yield _flaw_text(question, f"claims {claimed:.6g} s and a lower bound of {bound:.6g} s")
        if bound is not None and not result.bound_scope:
            yield _flaw_text(question, "lower_bound_s without bound_scope: of which plans?")


def _disagreeing(interview: Interview) -> Iterator[str | None]:
    for question, answer in interview.plans:
        claimed = _claimed_s(answer.result)
        if question.about != "one-device" or claimed is None:
            continue
        seconds = interview.seconds(question, answer)
        if abs(claimed - seconds) > AGREED * seconds:
            yield _flaw_text(question, f"claims {claimed:.6g} s where all models agree on {seconds:.6g} s")


def _flaw_text(question: Question, what: str) -> str:
    return f"{question.call.name}: {what}"
