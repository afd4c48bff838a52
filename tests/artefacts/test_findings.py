"""What cases come to: the judgement, the figure that decides and the words."""

from hypothesis import given
from hypothesis import strategies as st

from pipebench.artefacts.findings import Case, claim_only, finding, judge_cases, judgement, named_case
from pipebench.domain.artefact import Claim

CLAIM = Claim(name="faster", statement="it is faster", where="section 1")
CASES = st.lists(st.builds(Case, st.text(), st.floats(-9, 9), st.booleans(), st.just("")), min_size=1)


@given(CASES)
def test_the_case_least_in_favour_decides(cases: list[Case]) -> None:
    made = finding(CLAIM, cases, "so")
    against = [case.value for case in cases if not case.holds]
    assert made.value == min(against or [case.value for case in cases])
    assert (made.judgement == "holds") == (not against)
    assert (made.judgement == "does not hold") == (len(against) == len(cases))
    assert made.measured == tuple(case.line for case in cases)
    assert finding(CLAIM, cases, "so", value=0.0).value == 0.0


def test_judgements() -> None:
    assert [judgement(h) for h in ([True, True], [True, False], [False])] == ["holds", "depends", "does not hold"]


def test_named_cases_are_told_apart_where_they_disagree() -> None:
    cases = [named_case("a", "2.0", 2.0, True), named_case("b", "0.5", 0.5, False)]
    made = judge_cases(CLAIM, cases, "above 1", "b is slow")
    assert made.measured == ("a: 2.0", "b: 0.5")
    assert made.reason == "above 1. So for a; not for b. b is slow"
    assert judge_cases(CLAIM, cases[:1], "above 1", "b is slow").reason == "above 1"
    assert judge_cases(CLAIM, cases[1:], "above 1", "b is slow").reason == "above 1. b is slow"
    assert judge_cases(CLAIM, cases[1:], "above 1").reason == "above 1"


def test_nameless_cases_are_counted() -> None:
    cases = [Case("2.0", 2.0, True), Case("0.5", 0.5, False)]
    assert judge_cases(CLAIM, cases, "above 1").reason == "above 1; not so in 1 of 2 cases."
    assert judge_cases(CLAIM, cases, "above 1", "Why").reason == "above 1; not so in 1 of 2 cases. Why"
    assert judge_cases(CLAIM, cases[:1], "above 1", "Why").reason == "above 1"


def test_nothing_run_judges_nothing() -> None:
    made = judge_cases(CLAIM, [], "above 1", no_cases="no plans")
    assert (made.judgement, made.reason, made.value, made.measured) == ("claim only", "no plans", None, ())
    assert claim_only(CLAIM).judgement == "claim only"
