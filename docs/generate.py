"""The reference pages, from the code: python docs/generate.py writes them, --check says which are not current."""

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args

import click
import msgspec
from columns_page import anchor, columns, section_link
from hooks_head import head
from planners_page import planners

from pipebench.bench.accuracy.run import COLUMNS, COUNTS, FIGURES, OPTIONAL, REQUIRED, Run
from pipebench.cli.commands.reference import plugin
from pipebench.cli.main import COMMANDS, main
from pipebench.documents.document import KINDS, VERSION
from pipebench.documents.fields import field_texts, value_types
from pipebench.documents.glossary import subjects
from pipebench.domain.limits import MOST_OUTPUT_BYTES, MOST_RUNS
from pipebench.domain.value import Value
from pipebench.domain.workload import SOURCES, workload_fields
from pipebench.hooks import API_VERSION, specs
from pipebench.hooks.context import Context, ProfileRequest
from pipebench.hooks.descriptors import (
    SLOTS,
    Capabilities,
    Component,
    ExecutorCapabilities,
    ScheduleCapabilities,
)
from pipebench.hooks.discovery import Provider
from pipebench.hooks.manager import Host
from pipebench.hooks.originals import Original, OriginalCase
from pipebench.hooks.programs.program import (
    INFEASIBLE_EXIT,
    MOST_WRITTEN_BYTES,
    OUTPUT_KINDS,
    UNSUPPORTED_EXIT,
)
from pipebench.hooks.programs.program_call import VARIABLES
from pipebench.hooks.reproduction import Reproduction
from pipebench.hooks.syntax import describe_options
from pipebench.testing.calls import LONG_S, SMALL_S
from pipebench.testing.kit import checks, slot_checks
from pipebench.testing.sessions import SLOW_S
from pipebench.testing.targets import CheckTarget
from pipebench.testing.verdicts import Check

REFERENCE = Path(__file__).parent / "reference"
MADE = "<!-- made by docs/generate.py: do not edit -->"
WIDTH = 100
EMPTY = "''"
"""The empty text: two marks of code with nothing between them are no code."""


def hooks() -> Iterator[str]:
    """Each hook with its signature, its descriptor, the call behind `load`; then the context."""
    stated = f"`PIPEBENCH_API = {API_VERSION}`"
    yield f"# Hooks\n\n{MADE}\n\nVersion {API_VERSION} of the API: the module of a plugin states {stated}."
    yield from head()
    for slot, descriptor in SLOTS.items():
        hook = getattr(specs, f"pipebench_{slot}")
        yield f"## `{_signature(hook, f'pipebench_{slot}')}`"
        yield inspect.cleandoc(hook.__doc__ or "")
        yield f"### {descriptor.__name__}\n\n{inspect.cleandoc(descriptor.__doc__ or '')}"
        yield _table(descriptor)
    yield f"## What every descriptor has\n\n{inspect.cleandoc(Component.__doc__ or '')}"
    for kind in (Capabilities, ScheduleCapabilities, ExecutorCapabilities, ProfileRequest):
        yield f"## {kind.__name__}\n\n{inspect.cleandoc(kind.__doc__ or '')}\n\n{_table(kind)}"
    for kind in (Original, OriginalCase):
        summary = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]
        yield f"## {kind.__name__}\n\n{summary}\n\n{_value_table(kind)}"
    for kind in (Context, Reproduction):
        yield f"## {kind.__name__}\n\n{inspect.cleandoc(kind.__doc__ or '')}"
        yield "\n".join(_methods(kind))


def commands() -> Iterator[str]:
    """The help of each command, as it is printed."""
    yield f"# Commands\n\n{MADE}"
    yield _help(main, "pipebench")
    for name in COMMANDS:
        yield _help(_command(name), f"pipebench {name}")
    for name in plugin.COMMANDS:
        yield _help(_command("plugin", name), f"pipebench plugin {name}")


def components() -> Iterator[str]:
    """What ships, slot by slot, with options."""
    yield f"# Components that ship\n\n{MADE}"
    yield "`pipebench info NAME --cite` names every deviation from the reference."
    for slot in SLOTS:
        shipped = [each for each in Host().slot(slot).values() if each.provider.distribution == "pipebench"]
        yield f"## {slot.capitalize()}"
        for registered in shipped:
            yield _component(registered.component)


ASKING = f"""
`pipebench plugin check NAME` runs those of the slots that a plugin fills; `--only CHECK` makes no other calls than
that check looks at. A call that gives no answer is named on standard error after {SLOW_S:g} s and killed after
{SMALL_S:g} s, where it is about a planner's small problem, or {LONG_S:g} s. After such a call, and where the code
cannot be loaded, nothing more is asked of that component: checks that lack an answer are waived as `not asked`.
"""


def conformance() -> Iterator[str]:
    """The checks of each slot."""
    host = Host()
    yield f"# Checks of the conformance kit\n\n{MADE}"
    yield ASKING
    for slot in SLOTS:
        shipped = [name for name, each in host.slot(slot).items() if each.provider.distribution == "pipebench"]
        if shipped:
            listed = [check for name in shipped for check, _ in checks(host, name)]
            named = list({check.name: check for check in listed if check.slot == slot.removesuffix("s")}.values())
        else:
            blank = SLOTS[slot](name="blank", summary="", load="")
            named = slot_checks(host, CheckTarget(slot, "blank", blank, Provider("", "", ""), {}))
        if named:
            yield f"## {slot.capitalize()}\n\n" + "\n".join(
                f"- `{check.name}`: {_purpose(check)}" for check in named
            )


def _purpose(check: Check) -> str:
    work: Any = check.run
    lines = inspect.cleandoc(getattr(work, "func", work).__doc__ or "").splitlines()
    return lines[0] if lines else ""


def _component(component: Component) -> str:
    lines = [f"### `{component.name}`", "", component.summary]
    if component.reference:
        lines += ["", f"Reference: {component.reference}"]
    options = describe_options(component.options)
    if options:
        lines += ["", inspect.cleandoc(component.options.__doc__ or "").replace("\n\n", "\n"), ""]
        lines += ["| option | type | default |", "|---|---|---|"]
        lines += [
            f"| `{name}` | {_cell(kind)} | `{EMPTY if default == '' else default}` |"
            for name, kind, default in options
        ]
    return "\n".join(lines)


def _command(*names: str) -> click.Command:
    """The command of these words."""
    found: click.Command = main
    for name in names:
        assert isinstance(found, click.Group)
        below = found.get_command(click.Context(found), name)
        assert below is not None
        found = below
    return found


def _help(command: click.Command, path: str) -> str:
    names = ["-h", "--help"]
    context = click.Context(command, info_name=path, terminal_width=WIDTH, help_option_names=names)
    return f"## {path}\n\n```text\n{command.get_help(context).rstrip()}\n```"


def _table(kind: type) -> str:
    rows = ["| field | type | default |", "|---|---|---|"]
    for field in fields(kind):
        rows.append(f"| `{field.name}` | {_cell(_type(field.type))} | {_default(field)} |")
    return "\n".join(rows)


def _default(field: Any) -> str:
    value = field.default if field.default is not MISSING else None
    if field.default_factory is not MISSING:
        value = field.default_factory()
    if value is None:
        return "required" if field.default is MISSING else "`None`"
    shown = value.__name__ if isinstance(value, type) else repr(value)
    return f"`{shown}`"


def _methods(kind: type) -> Iterator[str]:
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield f"- `{name}`: {inspect.cleandoc(member.__doc__ or '')}"
        elif inspect.isfunction(member):
            yield f"- `{_signature(member, name)}`: {inspect.cleandoc(member.__doc__ or '')}"


def _signature(function: Callable[..., Any], name: str) -> str:
    signature = inspect.signature(function)
    kept = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    given = signature.replace(parameters=kept)
    return f"{name}{_short(str(given))}"


def _type(annotation: Any) -> str:
    return _short(inspect.formatannotation(annotation))


def _short(text: str) -> str:
    """Types by their own names: modules and quotes left out."""
    for word in ("collections.abc.", "typing."):
        text = text.replace(word, "")
    parts = text.replace("'", "").replace('"', "").split("pipebench.")
    return parts[0] + "".join(_last(part) for part in parts[1:])


def _last(part: str) -> str:
    """hooks.descriptors.Planner] as Planner]."""
    end = next((i for i, letter in enumerate(part) if not (letter.isalnum() or letter in "._")), len(part))
    return part[:end].rpartition(".")[2] + part[end:]


def _cell(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def workload() -> Iterator[str]:
    """The fields of a workload, as the command line, suites, the API and cells spell them."""
    yield f"# Fields of a workload\n\n{MADE}"
    yield (
        "A field is an option of `compare`, `plan` and `track`, a key of `[[workloads]]` in a suite, a\n"
        "keyword of `pipebench.api` and a keyword of an artefact's `Cell`. A suite's table and a cell have a\n"
        "model or a profile. The command line and the API take many of each (`--models`, `--profile`; `models=`,\n"
        "`profiles=`)."
    )
    lines = ["| key | option | value | in a suite | text |", "|---|---|---|---|---|"]
    for field in workload_fields().values():
        option = "" if field.name in SOURCES else f"`--{field.name.replace('_', '-')}`"
        value = ", ".join(field.choices) or field.kind.__name__
        several = "one or a list" if field.axis else "one"
        lines.append(f"| `{field.name}` | {option} | {value} | {several} | {field.help} |")
    yield "\n".join(lines)


def runs() -> Iterator[str]:
    """The columns of a table of measured runs."""
    yield f"# Columns of a table of runs\n\n{MADE}"
    yield (
        "`pipebench accuracy FILE` reads a CSV (UTF-8) with exactly these columns, in any order, and at most "
        f"{MOST_RUNS}\nrows. {' and '.join(f'`{name}`' for name in OPTIONAL)} may be left out. An empty cell: the "
        "source does not say. A `?` behind a value: it was inferred. "
        "[How a row becomes a problem](../how-to/accuracy.md#how-a-row-becomes-a-problem)."
    )
    texts = field_texts(Run)
    lines = ["| column | value | may be empty | text |", "|---|---|---|---|"]
    for name in (*COLUMNS, *OPTIONAL):
        value = "whole number" if name in COUNTS else "number above 0" if name in FIGURES else "text"
        lines.append(f"| `{name}` | {value} | {'no' if name in REQUIRED else 'yes'} | {texts[name]} |")
    yield "\n".join(lines)


ENVELOPE = f"""
A document is JSON: `{{"pipebench": KIND, "version": {VERSION}, "content": …}}`. Units stand in the names: `_s`
seconds, `_ns` nanoseconds, `_bytes` bytes. A field with a default may be left out. A field that is not listed
here is an error. `pipebench schema KIND` prints the JSON Schema of a kind.
"""
COMMAND = """
`cmd:./p --fast[depth=3]` runs `./p --fast`, and so does `cmd:'./p --fast'[depth=3]`. The options stand in
brackets right behind the command. A bracket in quotes, behind a space or without `name=` is the command's own. A
command reaches to the next comma outside quotes. Paths in it are taken from the folder in which it is typed; the
program may run in another. [An example](../how-to/any-language.md).
"""
RESULT = f"""
A `result` says most: what the planner claims and has proven, its counters and notices, how the search ended and,
where it has one, its schedule. Output that is wrong costs the row, and the reason names the path inside the
document. The end of stderr is kept with the row.

At the deadline the whole process group is killed: a program that watches `PIPEBENCH_DEADLINE_S` writes its best
plan before, with the termination `limit`. What the program leaves running in its group is killed with it. At most
{MOST_OUTPUT_BYTES} bytes of output are read. A program that writes a file of more than {MOST_WRITTEN_BYTES}
bytes, the output included, is ended by SIGXFSZ; where it ignores that signal, as Python does, the write fails.

`pipebench plugin check 'cmd:./p --fast'` runs the [conformance kit](conformance.md) on a program.
"""
DOCUMENTS = ("problem", "bare-plan", "plan", "result", "profile", "schedule", "trace")
"""Kinds of documents whose every field the reference explains."""


def documents() -> Iterator[str]:
    """Every field of a problem with its profile and cluster, of a plan, a result, a schedule and a trace."""
    yield f"# Documents\n\n{MADE}"
    yield ENVELOPE
    lines = ["| kind | content |", "|---|---|"]
    for kind in DOCUMENTS:
        contents = " or ".join(_link(each) for each in _contents(KINDS[kind]))
        lines.append(f"| `{kind}` | {contents} |")
    yield "\n".join(lines)
    listed = [each for kind in DOCUMENTS for each in value_types(KINDS[kind])]
    for each in dict.fromkeys(kind for found in listed for kind in (*_bases(found), found)):
        more = "".join(f"The fields of {_link(base)}, and:\n\n" for base in _bases(each))
        yield f"## {each.__name__}\n\n{_summary(each)}\n\n{more}{_value_table(each)}"


def programs() -> Iterator[str]:
    """What a program that plans gets and gives."""
    yield f"# A program as a planner\n\n{MADE}"
    yield COMMAND
    yield "## Input\n\nThe problem on stdin, a [document](documents.md) of kind `problem`, and in the environment:"
    yield "\n".join(["| variable | text |", "|---|---|", *(f"| `{v.name}` | {v.text} |" for v in VARIABLES)])
    kinds = ", ".join(f"`{kind}`" for kind in OUTPUT_KINDS)
    yield f"## Output\n\nOn stdout a [document](documents.md), of one of the kinds {kinds}; and an exit code:"
    codes = {
        0: "There is a plan on stdout.",
        INFEASIBLE_EXIT: "Infeasible: no plan fits. The last line of stderr is the reason.",
        UNSUPPORTED_EXIT: "Unsupported: it plans for no such problems. The last line of stderr is the reason.",
    }
    lines = ["| exit code | text |", "|---|---|", *(f"| {code} | {text} |" for code, text in codes.items())]
    yield "\n".join([*lines, "| any other | It crashed. The last line of stderr is the reason. |"])
    yield RESULT


def _contents(annotation: Any) -> list[type[Value]]:
    """The classes that a document's content is of."""
    return [annotation] if isinstance(annotation, type) else list(get_args(annotation))


def _bases(kind: type[Value]) -> list[type[Value]]:
    return [base for base in kind.__bases__ if issubclass(base, Value) and base is not Value]


def _link(kind: type[Value]) -> str:
    return f"[{kind.__name__}](#{kind.__name__.lower()})"


def _summary(kind: type[Value]) -> str:
    """The paragraphs of a docstring that are not about single fields."""
    texts = field_texts(kind)
    paragraphs = inspect.cleandoc(kind.__doc__ or "").split("\n\n")
    return "\n\n".join(each for each in paragraphs if each.partition(":")[0].partition(",")[0] not in texts)


def _value_table(kind: type[Value]) -> str:
    texts = field_texts(kind)
    rows = ["| field | type | default | text |", "|---|---|---|---|"]
    config = kind.__struct_config__
    if config.tag is not None:
        rows.append(f"| `{config.tag_field}` | `Literal[{config.tag}]` | required | which schedule it is. |")
    inherited = {info.name for base in _bases(kind) for info in msgspec.structs.fields(base)}
    for info in msgspec.structs.fields(kind):
        if info.name in inherited:
            continue
        text = texts.get(info.name, "").replace("|", "\\|")
        rows.append(f"| `{info.name}` | {_cell(_type(info.type))} | {_value_default(info)} | {text} |")
    return "\n".join(rows)


def _value_default(info: Any) -> str:
    if info.default_factory is not msgspec.NODEFAULT:
        return f"`{msgspec.json.encode(info.default_factory()).decode()}`"
    if info.default is msgspec.NODEFAULT:
        return "required"
    if isinstance(info.default, Value):
        return "`{}`"
    return "left out" if info.default is msgspec.UNSET else f"`{msgspec.json.encode(info.default).decode()}`"


def glossary() -> Iterator[str]:
    """Every term with its text, its fields of a row and its related terms."""
    yield f"# Glossary\n\n{MADE}"
    yield "`pipebench glossary WORD` prints one entry. WORD may be a field of a row, such as `class_bound_s`."
    anchors = _anchors()
    for subject in subjects():
        yield f"## {subject.name}"
        for term in subject.terms:
            yield f"### {term.name}\n\n{term.text}"
            lines = []
            if term.also:
                lines.append(f"- also: {', '.join(f'`{word}`' for word in term.also)}")
            if term.fields:
                lines.append(f"- fields of a row: {', '.join(f'`{name}`' for name in term.fields)}")
            if term.see:
                lines.append(f"- see: {', '.join(f'[{name}](#{anchors[name]})' for name in term.see)}")
            if term.section:
                lines.append(f"- exactly: [cost model]({section_link(term)})")
            yield "\n".join(lines)


def _anchors() -> dict[str, str]:
    """The anchor of each term, as readers of Markdown number equal ones."""
    headings = [heading for each in subjects() for heading in (each.name, *(term.name for term in each.terms))]
    found: dict[str, str] = {}
    made: list[str] = ["glossary"]
    for heading in headings:
        plain = anchor(heading)
        found[heading] = f"{plain}-{made.count(plain)}" if plain in made else plain
        made.append(plain)
    return found


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "hooks.md": hooks,
    "commands.md": commands,
    "components.md": components,
    "conformance.md": conformance,
    "workload.md": workload,
    "runs.md": runs,
    "documents.md": documents,
    "programs.md": programs,
    "glossary.md": glossary,
    "columns.md": lambda: columns(MADE, _anchors()),
    "planners.md": lambda: planners(MADE),
}


def page(name: str) -> str:
    """A page as it should be."""
    return "\n\n".join(part.strip() for part in PAGES[name]()) + "\n"


def run(arguments: list[str]) -> int:
    """Write the pages; --check: the number of those that are not current."""
    stale = 0
    for name in PAGES:
        path, text = REFERENCE / name, page(name)
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        if "--check" in arguments:
            print(f"{path} is not current: python docs/generate.py", file=sys.stderr)
            stale += 1
        else:
            path.write_text(text, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
