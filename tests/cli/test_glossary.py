"""pipebench glossary: every word of the tables has a meaning, and is found."""

import json
from typing import get_args

import pytest

from pipebench.bench.standings.records import RUNGS
from pipebench.documents.glossary import Term, find_term, subjects
from pipebench.domain.artefact import Judgement
from pipebench.domain.placement import PlacementKind
from pipebench.domain.problem import RegimeMode
from pipebench.domain.row import Row, Status
from pipebench.domain.verdict import Fit
from pipebench.hooks.descriptors import Fidelity
from tests.cli.command_line import CommandLine

TERMS = [term for subject in subjects() for term in subject.terms]


def test_without_a_word_every_term_has_its_line(pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        done = pipebench("glossary")
        assert done.code == 0
        lines = done.out.splitlines()
        assert max(map(len, lines)) <= width
        assert [line for line in lines if line.startswith("  ")] == [
            line for term in TERMS for line in lines if line.startswith(f"  {term.name}  ")
        ]
        assert {subject.name for subject in subjects()} <= set(lines)


@pytest.mark.parametrize("word", ["imprecise", "A/A", "rank agreement"])
def test_a_word_of_a_report_is_found(pipebench: CommandLine, word: str) -> None:
    assert pipebench("glossary", word).code == 0


def test_a_word_shows_the_whole_entry(pipebench: CommandLine) -> None:
    out = " ".join(pipebench("glossary", "gap").out.split())
    assert "(time - bound) / bound" in out
    assert "fields: gap see: bound, class gap" in out
    term = json.loads(pipebench("glossary", "gap", "--json").out)
    assert (term["name"], term["fields"]) == ("gap", ["gap"])


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        (["class_bound_s"], "class gap"),
        (["class", "gap"], "class gap"),
        (["Bubble"], "bubble"),
        (["in flight"], "in-flight"),
        (["schedulers"], "scheduler"),
        (["relay"], "routing"),
        (["par2"], "PAR2"),
        (["1f1b*"], "1F1B*"),
        (["search_ratio"], "search ratio"),
    ],
)
def test_fields_and_other_spellings_lead_to_their_term(
    pipebench: CommandLine, typed: list[str], name: str
) -> None:
    done = pipebench("glossary", *typed)
    assert (done.code, done.out.splitlines()[0]) == (0, name)


@pytest.mark.parametrize("word", ["pp", "pipeline stages", "pipeline degree"])
def test_what_the_option_pp_pins_is_explained(pipebench: CommandLine, word: str) -> None:
    out = " ".join(pipebench("glossary", word).out.split())
    assert "How many sets of devices stand in a row; --pp pins it" in out


def test_an_unknown_word_offers_the_nearest(pipebench: CommandLine) -> None:
    done = pipebench("glossary", "buble")
    assert done.code == 2
    assert "did you mean 'bubble'?" in done.err
    assert pipebench("glossary", "zzzz").err.count("did you mean") == 0


def test_every_field_of_a_row_leads_to_a_term() -> None:
    said = [name for term in TERMS for name in term.fields]
    assert sorted(said) == sorted(Row.__struct_fields__), "name it in `fields` of a term of glossary.toml"


@pytest.mark.parametrize(
    "word",
    [
        *(word for kind in (Status, RegimeMode, Fit, Judgement, PlacementKind) for word in get_args(kind)),
        *RUNGS,
    ],
)
def test_every_word_of_a_closed_list_is_found(word: str) -> None:
    assert find_term(word).text


def test_the_words_of_fidelity_are_explained() -> None:
    assert all(f"`{word}`" in find_term("fidelity").text for word in get_args(Fidelity) if word)


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_an_entry_is_short_and_its_related_terms_exist(term: Term) -> None:
    assert find_term(term.name) is term
    assert {find_term(name).name for name in term.see} == set(term.see)
    assert term.name not in term.see
    assert term.text.endswith(".")
    assert len(term.first_sentence) <= 90


def test_no_word_is_said_twice() -> None:
    names = [term.name for term in TERMS]
    spellings = [word for term in TERMS for word in (term.name, *term.also)]
    assert len(set(names)) == len(names)
    assert len(set(spellings)) == len(spellings)
