"""Components on the command line: what parses, and what each mistake says."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value
from pipebench.hooks.syntax import (
    Reference,
    describe_options,
    parse_reference,
    parse_references,
    split_list,
    typed_options,
)


class Options(Value, frozen=True, kw_only=True):
    targets: int = 1
    objective: str = "tps"
    strict: bool = False
    order: Literal["branch", "level"] = "branch"
    again: Literal["none", "stage"] | None = None


NAMES = st.from_regex(r"[a-z][a-z0-9*-]{0,8}", fullmatch=True)
VALUES = st.from_regex(r"[a-z0-9.+-]{1,8}", fullmatch=True)
REFERENCES = st.builds(Reference, NAMES, st.dictionaries(NAMES, VALUES, max_size=3))


@given(st.lists(REFERENCES, min_size=1, max_size=4, unique_by=str))
def test_what_is_printed_is_parsed_again(references: list[Reference]) -> None:
    assert parse_references([",".join(map(str, references))]) == references


@pytest.mark.parametrize("text", ["a,,b", "a[", "a]", "a[x=1", "a[[x=1]]", "a,", "a[x=1]]"])
def test_lists_that_are_not_well_formed(text: str) -> None:
    with pytest.raises(PipebenchError):
        split_list(text)


@pytest.mark.parametrize("text", ["a[x]", "a[x=1,x=2]", "[x=1]", "a[x=1]b", "a[=1]"])
def test_references_that_are_not_well_formed(text: str) -> None:
    with pytest.raises(PipebenchError):
        parse_reference(text)


def test_options_get_their_types() -> None:
    options = typed_options(parse_reference("p[targets=13,strict=true]"), Options)
    assert options == Options(targets=13, strict=True)


class Lists(Value, frozen=True, kw_only=True):
    sizes: tuple[int, ...] = ()
    names: list[str] = []
    pair: tuple[float, Literal["s", "ms"]] = (1.0, "s")
    perhaps: tuple[int, ...] | None = None
    file: str = ""


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("p[sizes=1:2:4,names=a]", Lists(sizes=(1, 2, 4), names=["a"])),
        ("p[sizes=3,pair=2.5:ms,perhaps=1:1]", Lists(sizes=(3,), pair=(2.5, "ms"), perhaps=(1, 1))),
        ("p[sizes=,names=]", Lists()),
        ("p[perhaps=null,file=a:b]", Lists(file="a:b")),
    ],
)
def test_the_entries_of_a_list_stand_between_colons(text: str, options: Lists) -> None:
    assert typed_options(parse_reference(text), Lists) == options


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p[sizes=1:x]", "p[sizes=1:x]: option 'sizes': Expected `int`, got `str` (write its entries as 1:2:4)"),
        ("p[pair=1]", "p[pair=1]: option 'pair': Expected `array` of length 2, got 1"),
    ],
)
def test_a_wrong_entry_of_a_list_is_named(text: str, expected: str) -> None:
    with pytest.raises(PipebenchError) as caught:
        typed_options(parse_reference(text), Lists)
    assert str(caught.value).startswith(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p[target=3]", "did you mean 'targets'"),
        ("p[targets=many]", "Expected `int`"),
        ("p[strict=maybe]", "unknown value of option 'strict' in p[strict=maybe]: 'maybe' (valid: false, true)"),
        (
            "p[order=sideways]",
            "unknown value of option 'order' in p[order=sideways]: 'sideways' (valid: branch, level)",
        ),
        ("p[again=al]", "(valid: none, stage)"),
    ],
)
def test_wrong_options_are_named(text: str, expected: str) -> None:
    with pytest.raises(PipebenchError) as caught:
        typed_options(parse_reference(text), Options)
    assert expected in str(caught.value)


def test_scripts_and_programs_are_recognised() -> None:
    assert parse_reference("./mine.py").is_script
    assert parse_reference("cmd:./planner --fast").is_program
    assert not parse_reference("madpipe").is_script


def test_options_are_described() -> None:
    assert describe_options(Options) == [
        ("targets", "int", 1),
        ("objective", "str", "tps"),
        ("strict", "bool", False),
        ("order", "branch | level", "branch"),
        ("again", "none | stage | None", None),
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("cmd:./p --opt 'a,b',madpipe", ["cmd:./p --opt 'a,b'", "madpipe"]),
        ('madpipe, cmd:./p "[1,2", b[x=1,y=2]', ["madpipe", 'cmd:./p "[1,2"', "b[x=1,y=2]"]),
        ("cmd:./p [1,cmd:./q ]", ["cmd:./p [1", "cmd:./q ]"]),
        (r"cmd:./p it\'s,a", [r"cmd:./p it\'s", "a"]),
        (r'cmd:./p "a\",b",c', [r'cmd:./p "a\",b"', "c"]),
        ("cmd:./p[a=1,b=2],uniform", ["cmd:./p[a=1,b=2]", "uniform"]),
        ("cmd:'./p --x'[a=1],cmd:./q --y[b=2] , r", ["cmd:'./p --x'[a=1]", "cmd:./q --y[b=2]", "r"]),
        ("cmd:./p [a=1],b", ["cmd:./p [a=1]", "b"]),
        ("cmd:./p '--x[a=1,b=2]',b", ["cmd:./p '--x[a=1,b=2]'", "b"]),
        ("./o'brien.py,./d'arcy.py", ["./o'brien.py", "./d'arcy.py"]),
    ],
)
def test_a_command_reaches_to_the_next_comma_outside_quotes(text: str, parts: list[str]) -> None:
    assert split_list(text) == parts
    assert [str(reference) for reference in parse_references([text])] == parts


COMMANDS = st.sampled_from(
    ["./p", "./p --x", "'./p --x'", "./p 'a,[b'", './p "[a=1]"', "./p [1", "p [a=1]", r"a\[b"]
)
PROGRAMS = st.builds(
    lambda command, options: Reference(f"cmd:{command}", {} if command.endswith("]") else options),
    COMMANDS,
    st.dictionaries(NAMES, VALUES, max_size=3),
)


@given(st.lists(st.one_of(REFERENCES, PROGRAMS), min_size=1, max_size=4, unique_by=str))
def test_programs_that_are_printed_are_parsed_again(references: list[Reference]) -> None:
    assert parse_references([",".join(map(str, references))]) == references


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("cmd:./p[depth=3]", "cmd:./p", {"depth": "3"}),
        (" cmd:./p[ depth = 3 , all=true ] ", "cmd:./p", {"depth": "3", "all": "true"}),
        ("cmd:'./p --x'[depth=3]", "cmd:'./p --x'", {"depth": "3"}),
        ("cmd:python mine.py[depth=3]", "cmd:python mine.py", {"depth": "3"}),
        ("cmd:./p a,b[depth=]", "cmd:./p a,b", {"depth": ""}),
        ("cmd:'./p [depth=3]'", "cmd:'./p [depth=3]'", {}),
        ("cmd:./p '[depth=3]'", "cmd:./p '[depth=3]'", {}),
        ("cmd:./p [depth=3]", "cmd:./p [depth=3]", {}),
        (r"cmd:./p\[depth=3]", r"cmd:./p\[depth=3]", {}),
        ("cmd:./p[depth]", "cmd:./p[depth]", {}),
        ("cmd:./p[1][a=2]", "cmd:./p[1]", {"a": "2"}),
        ("cmd:./p[a=1][b=2]", "cmd:./p[a=1]", {"b": "2"}),
        ("cmd:./p[a=1] --x", "cmd:./p[a=1] --x", {}),
    ],
)
def test_options_of_a_program_stand_at_its_end(text: str, name: str, options: dict[str, str]) -> None:
    reference = parse_reference(text)
    assert (reference.name, reference.options) == (name, options)
    assert reference.is_program
    assert not reference.is_script


def test_an_option_of_a_program_occurs_once() -> None:
    with pytest.raises(PipebenchError, match="option 'a' occurs twice"):
        parse_reference("cmd:./p[a=1,a=2]")


@pytest.mark.parametrize("text", ['cmd:"abc', "a,cmd:./p 'b,c", 'cmd:./p "a,b\\'])
def test_quotes_that_do_not_match(text: str) -> None:
    with pytest.raises(PipebenchError, match="quotes do not match"):
        split_list(text)


def test_the_order_of_options_does_not_matter() -> None:
    (one,) = parse_references(["a[y=2,x=1]", "a[x=1,y=2]"])
    assert str(one) == "a[x=1,y=2]"
    assert parse_reference(str(one)) == parse_reference("a[y=2,x=1]")
