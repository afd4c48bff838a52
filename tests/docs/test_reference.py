"""The reference is current, and says of every hook, command and component what is true."""

import importlib
import importlib.util
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from pipebench.check import check_plan
from pipebench.cli.commands.reference.plugin import COMMANDS as PLUGIN_COMMANDS
from pipebench.cli.main import COMMANDS
from pipebench.documents.document import KINDS
from pipebench.domain.result import PlanResult
from pipebench.hooks import specs
from pipebench.hooks.context import Context
from pipebench.hooks.descriptors import SLOTS, NoOptions
from pipebench.hooks.manager import Host
from pipebench.hooks.programs.program_call import VARIABLES, Variable
from tests.builders import chain_problem, cluster
from tests.cli.command_line import CommandLine
from tests.docs.pages import DOCS
from tests.hooks.distributions import install

REFERENCE = DOCS / "reference"
FIELDS = ("documents.md", "programs.md")
TABLES = ("columns.md", "planners.md")


@pytest.fixture(scope="module")
def generate() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        spec.loader.exec_module(module)
        yield module


@pytest.mark.parametrize(
    "page",
    ["hooks.md", "commands.md", "components.md", "conformance.md", "workload.md", "glossary.md", *FIELDS, *TABLES],
)
def test_a_page_is_as_the_generator_makes_it(generate: ModuleType, page: str) -> None:
    assert page in generate.PAGES
    assert (REFERENCE / page).read_text() == generate.page(page), "python docs/generate.py"


@pytest.mark.parametrize("slot", SLOTS)
def test_every_hook_is_documented_with_its_exact_signature(slot: str) -> None:
    text = (REFERENCE / "hooks.md").read_text()
    hook = getattr(specs, f"pipebench_{slot}")
    assert list(inspect.signature(hook).parameters) == []
    assert f"## `pipebench_{slot}() -> Iterable[{SLOTS[slot].__name__}]`" in text
    assert inspect.cleandoc(hook.__doc__ or "nothing") in text
    assert (SLOTS[slot].__doc__ or "nothing").splitlines()[0] in text


def test_the_whole_plugin_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (REFERENCE / "hooks.md").read_text()
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "one-device", text.partition("```python\n")[2].partition("```")[0])
    planner = Host().find("planners", "one-device").component
    problem = chain_problem([10, 10], [20, 20], cluster(2, memory=1000), mode="sync", mini_batch=4)
    result = Host().load(planner)(problem, Context(options=NoOptions()))
    assert check_plan(problem, result.plan).status == "valid"


def test_each_name_is_where_the_table_says() -> None:
    text = (REFERENCE / "hooks.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| `(pipebench[\w.]*)` \| (.*) \|$", text, re.MULTILINE)
    needed = {
        "hookimpl",
        "PlanResult",
        "DeadlineReached",
        "Schedule",
        "Trace",
        "Profile",
        *(k.__name__ for k in SLOTS.values()),
    }
    assert needed <= {name for name, _, _ in rows}
    for name, module, _ in rows:
        assert hasattr(importlib.import_module(module), name)


def test_no_hook_is_left_out() -> None:
    hooks = {name for name in vars(specs) if name.startswith("pipebench_")}
    assert hooks == {f"pipebench_{slot}" for slot in SLOTS}


@pytest.mark.parametrize(
    "command", [*([name] for name in COMMANDS), *(["plugin", name] for name in PLUGIN_COMMANDS)], ids=" ".join
)
def test_every_command_has_its_help(pipebench: CommandLine, command: list[str]) -> None:
    text = (REFERENCE / "commands.md").read_text()
    section = text.partition(f"## pipebench {' '.join(command)}\n")[2].partition("\n## ")[0]
    printed = pipebench(*command, "--help").out
    words = " ".join(section.split())
    for option in re.findall(r"--[a-z-]+", printed):
        assert option in words
    assert " ".join(printed.split("\n\n")[1].split()) in words


def test_every_component_that_ships_is_listed_with_its_source() -> None:
    text = (REFERENCE / "components.md").read_text()
    explained = (DOCS / "explanation" / "algorithms.md").read_text()
    host = Host()
    for slot in SLOTS:
        for name, registered in host.slot(slot).items():
            if registered.provider.distribution != "pipebench":
                continue
            assert f"### `{name}`\n\n{registered.component.summary}" in text
            if slot in ("planners", "schedulers", "executors", "profilers"):
                assert f"**`{name}`**" in explained, f"explanation/algorithms.md says nothing of {name}"


def structs(annotation: Any) -> set[type[msgspec.Struct]]:
    """The classes that a type is made of, as msgspec sees them."""
    found: set[type[msgspec.Struct]] = set()
    waiting = [msgspec.inspect.type_info(annotation)]
    while waiting:
        info = waiting.pop()
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls in found:
                continue
            found.add(info.cls)
            waiting += [field.type for field in info.fields]
        parts = [getattr(info, name, ()) for name in ("types", "item_types")]
        waiting += [part for each in parts for part in each]
        waiting += [getattr(info, name) for name in ("item_type", "key_type", "value_type") if hasattr(info, name)]
    return found


DOCUMENTED = {
    each.__name__: each
    for each in structs(PlanResult) | {s for kind in ("problem", "plan", "result") for s in structs(KINDS[kind])}
}


def test_the_tables_of_costs_are_documented() -> None:
    named = {
        "Problem",
        "Plan",
        "PlanResult",
        "Profile",
        "OperatorGraph",
        "DeviceCosts",
        "OperatorCosts",
        "DeviceType",
    }
    assert named <= DOCUMENTED.keys()


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_every_field_is_in_the_reference_with_its_meaning(name: str) -> None:
    kind = DOCUMENTED[name]
    page = (REFERENCE / "documents.md").read_text()
    section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    cells = [re.split(r"(?<!\\)\|", line) for line in section.splitlines() if line.startswith("| `")]
    rows = {row[1].strip(" `"): row[4].strip() for row in cells}
    inherited = {
        field.name for base in kind.__bases__ if base is PlanResult for field in msgspec.structs.fields(base)
    }
    assert rows.keys() >= {field.name for field in msgspec.structs.fields(kind)} - inherited
    for field, text in rows.items():
        assert len(text) > 3, f"{name}.{field} has no text: write `{field}: …` into the docstring of {name}"
    if inherited:
        assert "[PlanResult](#planresult)" in section


@pytest.mark.parametrize("kind", ["problem", "plan", "bare-plan", "result", "profile", "schedule"])
def test_a_schema_says_what_each_field_means(pipebench: CommandLine, kind: str) -> None:
    printed = json.loads(pipebench("schema", kind).out)
    for name, definition in printed["$defs"].items():
        for field, about in definition["properties"].items():
            assert field == "type" or about.get("description"), f"{name}.{field}"


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.name)
def test_every_variable_of_a_program_is_in_the_reference(variable: Variable) -> None:
    page = (REFERENCE / "programs.md").read_text()
    assert f"| `{variable.name}` | {variable.text} |" in page


def test_links_of_the_glossary_lead_to_their_terms() -> None:
    text = (REFERENCE / "glossary.md").read_text()
    assert "[1F1B](#1f1b)" in text
    assert "[1F1B*](#1f1b-1)" in text
    assert "class_bound_scope" in text.partition("### class gap\n")[2].partition("\n### ")[0]


def test_every_link_leads_somewhere() -> None:
    for page in DOCS.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+\.md)\)", page.read_text()):
            assert (page.parent / target).is_file(), f"{page}: {target}"
