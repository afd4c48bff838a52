"""The host names a component that ships in one file only: pipebench/defaults.py."""

import ast
import re
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

import pipebench
from pipebench import defaults
from pipebench.bench.suites import suite_names
from pipebench.domain.problem import RegimeMode
from pipebench.formats.clusters import cluster_table
from pipebench.formats.profiles.shipped import load_profile
from pipebench.hooks.descriptors import Scheduler
from pipebench.hooks.manager import Host

ROOT = Path(pipebench.__file__).parent
SLOTS = ("planners", "schedulers", "executors", "profilers", "models", "artefacts")
WORDS = {
    "data-parallel": "a way of training",
    "expert": "expert parallelism",
    "layout": "what a framework calls its cut",
    "pipedream": "also a file format",
    "piper": "also a file format",
    "simulate": "a verb",
    "tarnawski": "also a file format",
    "tensor-parallel": "a way of training",
    "torch": "also the library",
    "transformer": "a kind of network",
    "uniform": "an adjective, and a flag of frameworks",
}
"""Names that are words of the field too: in a sentence they count only where a component is meant (MEANT)."""
MEANT = r"(?:such as|default:|named:|use|planners?|schedulers?|executors?|profilers?) "
VALUES = {
    ("bench/store/keys.py", "torch"): "a distribution",
    ("bench/calibration/torchtitan_log.py", "1f1b"): "a schedule, as torchtitan spells it",
    ("bench/calibration/torchtitan_log.py", "gpipe"): "a schedule, as torchtitan spells it",
    ("cli/commands/planning/export.py", "pipedream"): "a format",
    ("cli/commands/files/profile.py", "bert"): "a model of the library transformers",
    ("costs/shapes/transformer.py", "branches"): "a cost term",
    ("formats/frameworks/layouts.py", "pipedream"): "a format",
    ("formats/frameworks/targets.py", "pipedream"): "a format",
    ("formats/hf_architectures.py", "bert"): "a model_type of Hugging Face",
    ("formats/json_forms.py", "piper"): "a format",
    ("formats/json_forms.py", "tarnawski"): "a format",
    ("formats/profiles/files.py", "pipedream"): "a format",
    ("formats/profiles/files.py", "piper"): "a format",
    ("formats/profiles/files.py", "tarnawski"): "a format",
    ("formats/profiles/pipedream.py", "pipedream"): "a format",
    ("formats/profiles/piper.py", "piper"): "a format",
    ("formats/profiles/tarnawski.py", "tarnawski"): "a format",
    ("hooks/installed/inventory.py", "torch"): "a package",
    ("testing/plan_cases.py", "branches"): "a case of the kit",
}
"""Values that are spelt as a component (or suite, or cluster) and mean something else, by file."""


@pytest.fixture(scope="module")
def host() -> Host:
    """All that ships."""
    return Host()


@pytest.fixture(scope="module")
def components(host: Host) -> set[str]:
    """All that the registry holds."""
    return {name for slot in SLOTS for name in host.slot(slot)}


def texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """String constants. Docstrings are left out, but for those that a command prints as its help."""
    prose: set[int] = set()
    for node in ast.walk(tree):
        printed = any("command" in ast.unparse(each) for each in getattr(node, "decorator_list", ()))
        body = getattr(node, "body", None)
        if isinstance(body, list) and not printed:
            prose |= {id(statement.value) for statement in body if isinstance(statement, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node


def names_in(text: str, components: set[str], others: set[str]) -> set[str]:
    """Components that a text names. others: words that count only as a value, or where MEANT."""
    if text in components | others:
        return {text}

    certain, meant = patterns(frozenset(components), frozenset(others))
    return {*certain.findall(text), *meant.findall(text)}


@cache
def patterns(components: frozenset[str], others: frozenset[str]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Of components that count in any sentence, and of all that count where they are MEANT."""

    def pattern(names: Set[str]) -> str:
        longest = sorted(names, key=len, reverse=True)
        return rf"(?<![\w/.-])({'|'.join(map(re.escape, longest))})(?![\w/-]|\.\w)"

    return re.compile(pattern(components - WORDS.keys())), re.compile(MEANT + pattern(components | others))


def test_no_other_file_of_the_host_names_a_component(components: set[str]) -> None:
    others = set(suite_names()) | set(cluster_table().clusters)
    found: dict[tuple[str, str], list[int]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        if where == "defaults.py":
            continue
        for node in texts(ast.parse(path.read_text(encoding="utf-8"))):
            for name in names_in(str(node.value), components, others):
                found.setdefault((where, name), []).append(node.lineno)
    assert {key: lines for key, lines in found.items() if key not in VALUES} == {}
    assert VALUES.keys() - found.keys() == set(), "no longer needed"


def test_templates_of_new_packages_name_no_component(components: set[str]) -> None:
    for path in sorted(ROOT.rglob("*.tmpl")):
        assert names_in(path.read_text(encoding="utf-8"), components, set()) == set(), path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zb-v", {"zb-v"}),
        ("branches", {"branches"}),
        ("stages run under zb-v here", {"zb-v"}),
        ("interleaved-1f1b", {"interleaved-1f1b"}),
        ("give --planners madpipe,graphpipe", {"madpipe", "graphpipe"}),
        ("name one that does, such as torch", {"torch"}),
        ("a trace of torch's profiler", set()),
        ("the layout is empty", set()),
        ("one of the branches", set()),
        ("nothing named: branches", {"branches"}),
        ("torch.distributed", set()),
    ],
)
def test_what_counts_as_a_name(components: set[str], text: str, expected: set[str]) -> None:
    assert names_in(text, components, {"branches"}) == expected


def test_the_regimes_are_those_of_problems() -> None:
    assert get_args(defaults.Mode) == get_args(RegimeMode)


def test_every_default_exists(host: Host) -> None:
    named = {
        "schedulers": {
            *defaults._SCHEDULERS.values(),
            *defaults.FRAMEWORK_SCHEDULERS,
            *(name for _, *names in defaults.KIT_SCHEDULERS.values() for name in names),
        },
        "executors": {defaults.SIMULATOR, defaults.MEASURING_EXECUTOR},
        "profilers": {defaults.PROFILER, defaults.MEASURING_PROFILER},
        "models": {defaults.LANGUAGE_MODEL, defaults.EXAMPLE_MODEL},
        "planners": {
            *defaults.FIRST_PLANNERS,
            defaults.LAYOUT_PLANNER,
            *defaults.COMPARED_PLANNERS,
            *defaults.EXAMPLE_PLANNERS,
            *defaults.EXAMPLE_CUTS,
        },
    }
    for slot, names in named.items():
        for name in names:
            host.find(slot, name)
    load_profile(defaults.EXAMPLE_MODEL)
    assert defaults.SUITE in suite_names()
    assert defaults.CLUSTER in cluster_table().clusters


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_schedulers_suit_their_regime(host: Host, mode: RegimeMode) -> None:
    for placement in get_args(defaults.Placement):
        component = host.find("schedulers", defaults.scheduler_for(mode, placement)).component
        assert isinstance(component, Scheduler)
        assert component.capabilities.produces == ("finite" if mode == "sync" else "periodic")
