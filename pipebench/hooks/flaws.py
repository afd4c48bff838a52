"""Check descriptors: plugins are a boundary, so each field is checked once."""

import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import msgspec

from pipebench.defaults import BEST
from pipebench.domain.value import Value
from pipebench.hooks.descriptors import (
    Capabilities,
    Component,
    Executor,
    ExecutorCapabilities,
    Format,
    Planner,
    Profiler,
    ScheduleCapabilities,
    Scheduler,
)
from pipebench.hooks.originals import Original

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9*._/+-]*")
_LOAD = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_CAPABILITIES: dict[type[Component], type[Any]] = {
    Planner: Capabilities,
    Scheduler: ScheduleCapabilities,
    Executor: ExecutorCapabilities,
}


def flaw(component: object, expected: type[Component]) -> str | None:
    """Why a hook's component cannot be used, in one line without its name; None when it can."""
    if not isinstance(component, expected):
        return f"it yields {type(component).__name__}, not {expected.__name__}"
    if not isinstance(component.name, str) or not _NAME.fullmatch(component.name):
        return f"{component.name!r} is not a usable name"
    if isinstance(component, Planner) and component.name == BEST:
        return f"{BEST!r} is the name of the portfolio of all planners: no planner has it"
    return _text(component) or _options(component.options) or _abilities(component, expected)


def _text(component: Component) -> str | None:
    for field in fields(component):
        text = getattr(component, field.name)
        if field.type is str and not isinstance(text, str):
            return f"{field.name} is no text"
        if field.type is str and not _is_unicode(text):
            return f"{field.name} has half characters"
    if not _LOAD.fullmatch(component.load):
        return f"load is {component.load!r}, not 'package.module:attribute'"
    for part in component.kernel_parts if isinstance(component, Planner) else ():
        if not _LOAD.fullmatch(part):
            return f"kernels has {part!r}, not 'package.module:attribute'"
    lists = {"deviations": component.deviations, "calls": component.calls, "paths": component.paths}
    if isinstance(component, Format):
        lists["suffixes"] = component.suffixes
    if isinstance(component, Executor | Profiler):
        lists |= {"variables": component.variables, "writes": component.writes}
    for name, texts in lists.items():
        if not isinstance(texts, tuple) or not all(isinstance(text, str) for text in texts):
            return f"{name} is not a tuple of texts"
    return None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _options(options: Any) -> str | None:
    if not isinstance(options, type) or not issubclass(options, Value):
        return "options is not a class of options (a subclass of Value)"
    for info in msgspec.structs.fields(options):
        if info.required:
            return f"option {info.name!r} has no default"
    return None


def _abilities(component: Component, expected: type[Component]) -> str | None:
    kind = _CAPABILITIES.get(expected)
    if kind is None:
        return None
    capabilities: Any = getattr(component, "capabilities", None)
    if not isinstance(capabilities, kind):
        return f"capabilities is not of type {kind.__name__}"
    try:
        msgspec.convert(asdict(capabilities), kind)
    except msgspec.ValidationError as error:
        return f"capabilities: {error}"
    if not isinstance(component, Planner):
        return None
    if not component.capabilities.regimes:
        return "capabilities name no regime"
    scheduler = component.default_scheduler
    if not isinstance(scheduler, Mapping) or not all(isinstance(name, str) for name in scheduler.values()):
        return "default_scheduler does not map regimes to names"
    original: object = component.original
    return None if original is None or isinstance(original, Original) else "original is no Original"
