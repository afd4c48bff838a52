"""Help texts: commands and options under headings, none left out and none twice."""

import re
from collections.abc import Iterator

import click
import pytest

from pipebench.cli.main import COMMANDS, FOLDERS, SECTIONS, main
from pipebench.cli.option_groups import HOW, NO_GROUP, OPTION_GROUPS, OUTPUT, WHO
from pipebench.domain.workload import PINNED, WHAT, WHERE, keyword_fields
from tests.cli.command_line import CommandLine


def sections(text: str) -> dict[str, str]:
    """The parts of a help text by heading."""
    parts = re.split(r"^([A-Z][^\n]*):\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def options(text: str) -> list[str]:
    """The long options that a part lists, in order."""
    return re.findall(r"^  (?:-\w, )?(?:-\w, )?(--[a-z-]+)", text, re.MULTILINE)


def test_commands_stand_in_groups(pipebench: CommandLine) -> None:
    found = sections(pipebench("--help").out)
    assert [*SECTIONS] == [
        heading for heading in found if heading != "Options" and not heading.startswith("Usage")
    ]
    for heading, section in SECTIONS.items():
        assert re.findall(r"^  (\w+)  ", found[heading], re.MULTILINE) == [*section]
    assert sum(map(len, SECTIONS.values())) == len(COMMANDS)
    assert FOLDERS.keys() < SECTIONS.keys()


def test_the_help_ends_with_how_names_are_completed(pipebench: CommandLine) -> None:
    last = pipebench("--help").out.splitlines()[-1]
    assert 'eval "$(_PIPEBENCH_COMPLETE=bash_source pipebench)"' in last


@pytest.mark.parametrize("command", [["compare"], ["plan"], ["track", "record"], ["track", "check"]], ids=" ".join)
def test_options_stand_in_groups(pipebench: CommandLine, command: list[str]) -> None:
    found = sections(pipebench(*command, "--help").out)
    headings = [heading for heading in found if heading in (*OPTION_GROUPS, NO_GROUP)]
    assert headings == [each for each in (*OPTION_GROUPS, NO_GROUP) if each in headings]
    assert options(found[NO_GROUP]) == ["--help"]
    listed = [each for heading in headings for each in options(found[heading])]
    assert len(set(listed)) == len(listed)
    for field in keyword_fields().values():
        assert f"--{field.name.replace('_', '-')}" in options(found[field.group])


def test_the_groups_of_compare(pipebench: CommandLine) -> None:
    found = {heading: set(options(text)) for heading, text in sections(pipebench("compare", "--help").out).items()}
    assert {"--profile", "--suite", "--mini-batch"} <= found[WHAT]
    assert {"--cluster", "--memory", "--bandwidth", "--link-mode"} <= found[WHERE]
    assert {"--micro-batch", "--tp", "--cp"} <= found[PINNED]
    assert {"--planners", "--schedulers", "--plans"} <= found[WHO]
    assert {"--timeout", "--jobs", "--seed", "--trust"} <= found[HOW]
    assert {"--out", "--html", "--json"} <= found[OUTPUT]


def choices(command: click.Command) -> Iterator[click.Parameter]:
    """Options and arguments of a command, and of those below it, that take one of some words."""
    yield from (each for each in command.params if isinstance(each.type, click.Choice))
    for name in command.list_commands(click.Context(command)) if isinstance(command, click.Group) else ():
        below = command.get_command(click.Context(command), name)
        assert below is not None
        yield from choices(below)


def test_every_choice_offers_the_nearest_of_its_words() -> None:
    found = list(choices(main))
    assert len({name for each in found for name in each.opts}) > 10
    for each in found:
        assert isinstance(each.type, click.Choice)
        for word in each.type.choices:
            with pytest.raises(click.BadParameter, match=f"did you mean '{word}'"):
                each.type.convert(f"{word}x", each, None)


def test_a_wrong_choice_names_its_option(pipebench: CommandLine) -> None:
    done = pipebench("compare", "--regime", "asinc")
    assert done.code == 2
    assert "'--regime': 'asinc' is not one of its values (did you mean 'async'?" in done.err


@pytest.mark.parametrize("group", [[], ["plugin"], ["track"]], ids=" ".join)
def test_a_wrong_command_names_its_group_and_the_nearest(pipebench: CommandLine, group: list[str]) -> None:
    done = pipebench(*group, "chekc")
    assert done.code == 2
    assert f"no command {' '.join([*group, 'chekc'])!r}" in done.err
    assert "did you mean" in done.err
