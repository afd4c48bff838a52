"""What a descriptor says in every slot, metadata and options, and what finding the plugin costs."""

import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Literal, get_args, get_origin

import msgspec

from pipebench.bench.searches.isolation.client import child_environment
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value
from pipebench.hooks.descriptors import Artefact, Component, Format, Planner, Scheduler
from pipebench.hooks.installed.inventory import HEAVY
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import Reference, typed_options
from pipebench.testing.calls import Call
from pipebench.testing.sessions import breakdown, undeclared_call
from pipebench.testing.targets import CheckTarget
from pipebench.testing.verdicts import Failed, Waived, first_failure

CODE = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
module, slots = sys.argv[2], json.loads(sys.argv[3])
import pipebench.hooks.manager
from importlib import import_module
before = set(sys.modules)
found = import_module(module)
for slot in slots:
    hook = getattr(found, "pipebench_" + slot, None)
    list(hook() if hook else ())
json.dump(sorted(set(sys.modules) - before), sys.stderr)
"""
MOST_S = 60.0


def discovery(subject: CheckTarget) -> None:
    """Nothing heavy is imported, nothing printed, while a plugin is found and its hooks are called."""
    assert subject.point is not None
    code, printed, imported = _import_fresh(subject.point.module, subject.slot, json.dumps(sys.path))
    if code != 0:
        raise Failed(f"{subject.point.module} cannot be imported in a fresh interpreter: {imported[:200]}")
    if printed:
        raise Failed(f"{subject.point.module} prints {printed.strip()[:60]!r} while it is imported")
    heavy = sorted({name.partition(".")[0] for name in json.loads(imported)} & HEAVY)
    if heavy:
        raise Failed(f"{subject.point.module} imports {', '.join(heavy)}; import where `load` points to")


@lru_cache(maxsize=256)
def _import_fresh(module: str, slot: str, path: str) -> tuple[int, str, str]:
    """Exit code, what was printed, and the modules as JSON (or the last line of the error)."""
    command = [sys.executable, "-P", "-c", CODE, path, module, json.dumps([slot])]
    try:
        done = subprocess.run(
            command, env=child_environment(), capture_output=True, text=True, timeout=MOST_S, check=False
        )
    except subprocess.TimeoutExpired:
        return 1, "", f"no end within {MOST_S:g} s"
    lines = done.stderr.strip().splitlines() or [""]
    return done.returncode, done.stdout, lines[-1]


LONGEST_SUMMARY = 120
EXTREMES = ("0", "-1")


def metadata(host: Host, slot: str, component: Component) -> None:
    """A summary of one line, a reference where a fidelity or paper is named, schedulers that exist."""
    first_failure(_metadata(host, component))
    del slot


def _metadata(host: Host, component: Component) -> Iterator[str | None]:
    summary = component.summary
    if not summary.strip() or "\n" in summary or len(summary) > LONGEST_SUMMARY:
        yield f"summary is {summary[:40]!r}: one line of at most {LONGEST_SUMMARY} letters says what it does"
    if any(not deviation.strip() for deviation in component.deviations):
        yield "a deviation is empty"
    if component.deviations and not component.reference:
        yield "deviations without a reference: from what?"
    if isinstance(component, Planner):
        yield from _planner(host, component)
    if isinstance(component, Artefact) and not component.paper:
        yield "paper is empty: of which paper is it?"
    if isinstance(component, Format):
        for suffix in component.suffixes or ("",):
            if not suffix.startswith(".") or len(suffix) < 2:
                yield f"suffix {suffix!r}: file names end with .something"


def _planner(host: Host, planner: Planner) -> Iterator[str | None]:
    if planner.fidelity and not planner.reference and planner.fidelity != "improved":
        yield f"fidelity {planner.fidelity!r} without a reference: to what?"
    for mode in planner.capabilities.regimes:
        name = planner.default_scheduler.get(mode)
        if name is None:
            continue
        try:
            found = host.find("schedulers", name).component
        except PipebenchError as error:
            yield f"default_scheduler for {mode}: {error}"
            continue
        if mode == "sync" and isinstance(found, Scheduler) and found.capabilities.produces == "periodic":
            yield f"default_scheduler for sync is {name!r}, which makes periodic schedules"


def option_texts(component: Component) -> list[tuple[str, str]]:
    """Option and value as on the command line: each value of a choice, and extremes of a number."""
    found = []
    for info in msgspec.structs.fields(component.options):
        for value in _values(info.type):
            found.append((info.name, value))
    return found


def changing_texts(component: Component) -> list[tuple[str, str]]:
    """Of these, what the options type takes and what is no default: with those the other checks call it.

    Raises Failed for an options type that fails in any way but PipebenchError.
    """
    plain = {info.name: info.default for info in msgspec.structs.fields(component.options)}
    return [
        (option, text)
        for option, text in option_texts(component)
        for options in _accepted(component, option, text)
        if (type(getattr(options, option)), getattr(options, option)) != (type(plain[option]), plain[option])
    ]


def _accepted(component: Component, option: str, text: str) -> list[Value]:
    """The options with this value, or nothing where it is refused."""
    try:
        return [typed_options(Reference(component.name, {option: text}), component.options)]
    except PipebenchError:
        return []
    except Exception as error:
        raise Failed(f"{option}={text}: {type(error).__name__} while it is read: {error}") from None


def tried_options(subject: CheckTarget, call_for: Callable[[str], Call]) -> None:
    """Each option is explained, and each value but its default taken without a crash.

    call_for: what to call, by label.
    """
    component = subject.component
    check_option_docs(component)
    if not option_texts(component) or subject.label != component.name:
        raise Waived("it has no options to try")
    labels = [f"{component.name}[{option}={text}]" for option, text in changing_texts(component)]
    given = subject.calls.more([call_for(label) for label in labels]).values()
    first_failure(found for answer in given for found in (breakdown(answer), undeclared_call(answer)))


def check_option_docs(component: Component) -> None:
    """Each option is explained in the docstring of its class."""
    text = " ".join(_docstrings(component.options))
    for info in msgspec.structs.fields(component.options):
        if info.name not in text:
            raise Failed(f"option {info.name!r} is not explained in the docstring of {component.options.__name__}")


def _docstrings(options: type[Value]) -> Iterator[str]:
    for base in inspect.getmro(options):
        if base is not Value and issubclass(base, Value):
            yield base.__doc__ or ""


def _values(annotation: Any) -> list[str]:
    if annotation is bool:
        return ["true", "false"]
    if annotation in (int, float):
        return list(EXTREMES)
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    return [value for part in get_args(annotation) for value in _values(part)]
