"""The vocabulary of a source by the sizes in its models' names, held against parameters counted on the graph."""

import pytest
from msgspec.structs import replace

from pipebench.bench.accuracy.expression import express
from pipebench.bench.accuracy.reader import read_runs
from pipebench.bench.accuracy.run import Run
from pipebench.bench.accuracy.vocabulary import gpt_parameters, vocabulary_by_source
from pipebench.bench.cage.installed import installed_host
from pipebench.bench.problems.plugin_sources import build_graph
from pipebench.hooks.syntax import parse_reference
from tests.bench.accuracy.tables import run

SHIPPED = {each.id: each for each in read_runs("published")}
SMALL, LARGE = SHIPPED["zb-t4-1.5B-1f1b-m24"], SHIPPED["zb-t4-14.6B-1f1b-m48"]


def vocabularies(*runs: Run) -> list[int]:
    found = vocabulary_by_source(runs)
    return [found[each.source] for each in runs]


def test_the_count_is_that_of_the_graph() -> None:
    options = "architecture=gpt2,layers=3,hidden=64,heads=4,ffn=256,vocab=512,sequence=32,tied=true"
    graph = build_graph(installed_host(), parse_reference(f"llm[{options}]"))
    assert sum(each.bytes for each in graph.parameters) == 4 * gpt_parameters(3, 64, 512, 32)


def test_gpt_2_has_as_many_parameters_as_its_authors_say() -> None:
    """124 million: 12 layers of 768, 1,024 positions."""
    assert gpt_parameters(12, 768, 50257, 1024) == 124_439_808


def test_a_source_has_the_vocabulary_with_which_all_its_names_are_right() -> None:
    """With 50,257 entries the model that is called 14.6B would have 14.74 billion parameters."""
    assert vocabularies(SMALL) == [50257]
    assert vocabularies(SMALL, LARGE) == [32000, 32000]
    assert vocabularies(replace(SMALL, source="another"), LARGE) == [50257, 32000]


@pytest.mark.parametrize("model", ["gpt", "gpt-99B", "gpt-14.6Bx", "llama-14.6B"])
def test_names_that_say_no_size_or_none_that_can_be_leave_the_usual_one(model: str) -> None:
    assert vocabularies(replace(LARGE, model=model)) == [50257]


def test_a_name_says_its_last_digit_rounded() -> None:
    """20 layers of 5,120: 6.555 billion parameters with 50,257 entries, which is no 6.5B; 6.462 with 32,000."""
    assert gpt_parameters(20, 5120, 50257, LARGE.seq or 0) == 6_555_356_160
    assert vocabularies(replace(LARGE, layers=20, model="gpt-6.5B")) == [32000]
    assert vocabularies(replace(LARGE, layers=20, model="gpt-6.6B")) == [50257]


def test_a_vocabulary_that_is_said_is_no_evidence() -> None:
    assert vocabularies(replace(LARGE, vocab=51200), SMALL) == [50257, 50257]


def test_it_is_an_assumption_with_alternatives() -> None:
    made = express(run(vocab=""), vocabulary=32000)
    (vocab,) = [each for each in made.assumptions if each.field == "vocab"]
    assert (vocab.value, vocab.alternatives) == ("32000", ("50257", "51200"))
    assert "vocab=32000," in (made.spec.model or "")
