"""The table of training frameworks: what it says, and what a name that is not in it gets."""

import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.formats.frameworks.facts import (
    framework_facts,
    framework_family,
    framework_names,
    framework_table,
    load_framework,
)


@pytest.mark.parametrize("name", framework_names())
def test_a_framework_has_facts_with_sources(name: str) -> None:
    made = load_framework(name)
    assert made.sources
    assert set(made.sources) <= set(framework_table().sources)
    assert made.name == name
    assert 1e-6 < made.launch_s < 1e-4
    assert 1e6 < made.context_bytes < 1e10


def test_every_source_is_somebodys() -> None:
    table = framework_table()
    assert {source for entry in table.frameworks for source in entry.facts.sources} == set(table.sources)


def test_a_variant_is_its_framework_but_for_what_it_says() -> None:
    usual, eager = load_framework("torchtitan"), load_framework("torchtitan-eager")
    differ = {each for each in usual.__struct_fields__ if getattr(usual, each) != getattr(eager, each)}
    assert differ == {"name", "elementwise", "selective_launches"}
    entries = [framework_facts(name) for name in ("torchtitan", "torchtitan-eager")]
    assert entries[0].gradient_precision == entries[1].gradient_precision
    assert entries[0].summary != entries[1].summary
    assert [framework_family(name) for name in ("torchtitan", "torchtitan-eager", "yours")] == [
        "torchtitan", "torchtitan", "yours",
    ]  # fmt: skip


def test_an_unknown_framework_gets_the_nearest_name() -> None:
    with pytest.raises(PipebenchError, match="megatron-v3") as refused:
        load_framework("megatron-v3")
    assert "megatron-v2" in refused.value.hint
