"""What problems are called beside each other: short, told apart, and whole where something is left out."""

from pipebench.report.problem_names import LONGEST, ProblemNames, short_subject
from tests.report.rows import row

LLAMA = "llm[ffn=11008,heads=32,hidden=4096,layers=32,sequence=2048]"
LONGER = LLAMA.replace("sequence=2048", "sequence=4096")


def test_a_short_subject_stays_as_it_is() -> None:
    text = "transformer[ffn=8192,heads=32,hidden=2048]"
    assert len(text) <= LONGEST
    one = row("a", model=text, profile="transformer")
    names = ProblemNames([one])
    assert (names.short(one), names.whole(one)) == (text, "")


def test_options_that_all_share_are_left_out_and_said_once() -> None:
    one = row("a", model=LLAMA, profile="llm")
    names = ProblemNames([one, row("b", model=LLAMA, profile="llm")])
    assert names.short(one) == "llm"
    assert names.whole(one) == "llm[ffn=11008, heads=32, hidden=4096, layers=32, sequence=2048]"
    named = row("a", model=LLAMA, profile="llama-7b")
    names = ProblemNames([named])
    assert names.short(named) == "llama-7b"
    assert names.whole(named).startswith("llama-7b is llm[ffn=11008, ")


def test_options_that_tell_two_problems_apart_stay() -> None:
    one, other = row("a", model=LLAMA, profile="l"), row("a", model=LONGER, profile="l")
    names = ProblemNames([one, other])
    assert [names.short(each) for each in (one, other)] == ["llm[sequence=2048]", "llm[sequence=4096]"]


def test_the_values_of_a_grid_stay() -> None:
    cells = [row("a", workload=f"{LLAMA} devices={count}") for count in (4, 8)]
    assert [ProblemNames(cells).short(each) for each in cells] == ["llm devices=4", "llm devices=8"]


def test_text_in_brackets_that_is_none_of_options_is_left_alone() -> None:
    odd = f"{'x' * LONGEST}[a[b]]"
    assert short_subject(odd) == odd
    assert short_subject(f"qwen3 of {LLAMA}") == "qwen3"
