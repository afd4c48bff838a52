"""The reference is current, and says of every hook, command and component what is true."""

import importlib.util
import inspect
import re
from types import ModuleType

import pytest

from pipebench.cli.commands.plugin import COMMANDS as PLUGIN_COMMANDS
from pipebench.cli.main import COMMANDS
from pipebench.hooks import specs
from pipebench.hooks.descriptors import SLOTS
from pipebench.hooks.manager import Host
from tests.cli.command_line import CommandLine
from tests.docs.pages import DOCS

REFERENCE = DOCS / "reference"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["hooks.md", "commands.md", "components.md", "conformance.md", "workload.md"])
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


def test_every_link_leads_somewhere() -> None:
    for page in DOCS.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+\.md)\)", page.read_text()):
            assert (page.parent / target).is_file(), f"{page}: {target}"
