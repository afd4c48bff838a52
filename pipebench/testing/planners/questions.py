"""The calls that a planner is asked, in two processes, and the answers, asked for once."""

from dataclasses import dataclass
from functools import cached_property

from pipebench.bench.components import ready_planner
from pipebench.bench.score import judge
from pipebench.bench.searches.isolated import compile_kernels
from pipebench.bench.searches.request import Searcher
from pipebench.bench.services import HostServices
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.domain.schedule import Schedule
from pipebench.domain.verdict import Verdict
from pipebench.hooks.descriptors import Planner
from pipebench.hooks.manager import Host
from pipebench.hooks.programs.program import INFEASIBLE_EXIT, UNSUPPORTED_EXIT
from pipebench.hooks.syntax import parse_reference
from pipebench.simulation.metrics import metrics
from pipebench.testing import cases
from pipebench.testing.calls import SMALL_S, Answer, Call
from pipebench.testing.planners.repeats import LIMIT_S, Repeats
from pipebench.testing.targets import CheckTarget

FIRST, AGAIN = "chain, first call", "chain, after other problems"
EDGES = ("memory edge", "one byte less")
DEADLINES = ("deadline passed", "deadline near")
SHORT_S = 0.2
SPARE, SPARE_S = "time to spare", 2.0
WITHOUT = "a planner without a plan"
LATE_S = 10.0
"""After which a call that ignores its deadline is killed."""


@dataclass(frozen=True, slots=True)
class Question:
    """A call and what it is about, for messages."""

    call: Call
    mode: RegimeMode
    about: str

    @property
    def problem(self) -> Problem:
        """The planner's problem."""
        assert self.call.problem is not None
        return self.call.problem


class Interview:
    """All questions to one planner. Answers are made when the first is looked at."""

    def __init__(self, host: Host, subject: CheckTarget) -> None:
        assert isinstance(subject.component, Planner)
        self.host, self.subject, self.planner = host, subject, subject.component
        self.modes = self.planner.capabilities.regimes
        self.services = HostServices(host)
        mode = self.modes[0]
        self.repeats = Repeats(
            subject.calls.session, lambda name, given: self.question(mode, name, given, LIMIT_S).call, mode
        )

    @cached_property
    def _owner(self) -> str:
        """The distribution of the planner. Its kernels are compiled now, so that no answer waits for them."""
        label = self.subject.label
        for mode in self.modes:
            searcher = Searcher(planner=label, regime=mode)
            compile_kernels(self.host, ready_planner(self.host, parse_reference(label)), searcher)
        return self.subject.provider.distribution

    def _prefix(self) -> list[Question]:
        """What both processes are asked first, so that they differ in nothing but chance."""
        asked = []
        for mode in self.modes:
            asked.append(self.question(mode, FIRST, cases.chain(mode)))
            asked += [self.question(mode, name, cases.problem_case(name, mode)) for name in cases.PROBLEM_CASES]
        return asked

    def question(
        self, mode: RegimeMode, about: str, problem: Problem, limit_s: float | None = None, label: str = ""
    ) -> Question:
        """A question; limit_s: its deadline. label: the planner with other options."""
        call = Call(
            name=f"{about} ({mode})",
            slot="planners",
            component=label or self.subject.label,
            owner=self._owner,
            problem=problem,
            limit_s=limit_s,
            most_s=SMALL_S if limit_s is None else LATE_S,
        )
        return Question(call, mode, about)

    @cached_property
    def first(self) -> list[tuple[Question, Answer]]:
        """One process: the chain first and last, every case, starvation and pins between."""
        asked = self._prefix()
        for mode in self.modes:
            asked.append(self.question(mode, "starved", cases.starved_chain(mode)))
            for pin, pins in cases.PINNED.items():
                asked.append(self.question(mode, f"pin {pin}", cases.pinned(mode, pins)))
        for mode in self.modes:
            asked.append(self.question(mode, AGAIN, cases.chain(mode)))
        return self._answer(asked)

    @cached_property
    def second(self) -> list[tuple[Question, Answer]]:
        """Another process: every case again; memory edges; deadlines that have passed or will soon."""
        asked = self._prefix()
        for mode in self.modes:
            for about, bytes_ in self._edges(mode).items():
                asked.append(self.question(mode, about, cases.with_memory(cases.chain(mode), bytes_)))
        for mode in self.modes:
            for about, limit_s in zip(DEADLINES, (0.0, SHORT_S), strict=True):
                asked.append(self.question(mode, about, cases.large(mode), limit_s))
            asked.append(self.question(mode, SPARE, cases.chain(mode), SPARE_S))
        return self._answer(asked)

    def _edges(self, mode: RegimeMode) -> dict[str, int]:
        """Memory of which the planner's own plan takes every byte, and one byte less."""
        for question, answer in self.first:
            if question.about == "chain" and question.mode == mode and answer.ending == "returned":
                verdict = self.verdict(question, answer)
                peak = max(verdict.peak_bytes.values(), default=0)
                if verdict.status == "valid" and peak > 1:
                    return dict(zip(EDGES, (peak, peak - 1), strict=True))
        return {}

    def _answer(self, asked: list[Question]) -> list[tuple[Question, Answer]]:
        """Answers to those questions that a check needs."""
        calls = self.subject.calls
        found = calls.answers(calls.needed([question.call for question in asked]))
        return [(question, found[question.call.name]) for question in asked if question.call.name in found]

    def extra(self, asked: list[Question]) -> list[tuple[Question, Answer]]:
        """Answers to other questions, in a process of their own. Raises Waived where none is asked any more."""
        found = self.subject.calls.more([question.call for question in asked])
        return [(question, found[question.call.name]) for question in asked]

    @cached_property
    def plans(self) -> list[tuple[Question, Answer]]:
        """All answers of both that are valid plans."""
        returned = [(q, a) for q, a in (*self.first, *self.second) if a.ending == "returned"]
        return [(q, a) for q, a in returned if self.verdict(q, a).status == "valid"]

    def verdict(self, question: Question, answer: Answer) -> Verdict:
        """The suite's own, of a plan with its schedule."""
        return judge(question.problem, *plan_of(answer))

    def seconds(self, question: Question, answer: Answer) -> float:
        """The suite's simulation of one mini-batch."""
        plan, schedule = plan_of(answer)
        trace = self.services.simulate(question.problem, plan, schedule)
        return metrics(question.problem, plan, trace).seconds


def refusal_of(call: Call) -> str:
    """How the planner of a call says that there is no plan."""
    if parse_reference(call.component).is_program:
        return f"{WITHOUT} exits with code {INFEASIBLE_EXIT} (infeasible) or {UNSUPPORTED_EXIT} (unsupported)"
    return f"{WITHOUT} raises InfeasibleProblem or UnsupportedProblem"


def plan_of(answer: Answer) -> tuple[Plan, Schedule]:
    """Plan and schedule of an answer that returned one."""
    assert answer.result is not None
    assert answer.schedule is not None
    return answer.result.plan, answer.schedule
