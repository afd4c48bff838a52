"""Which components a component may ask its context for: those that it declares, and those that its user names."""

from functools import cache

import msgspec

from pipebench.domain.value import Value
from pipebench.hooks.descriptors import Component


class UndeclaredCall(RuntimeError):
    """A component asks its context for a component that its descriptor does not declare in `calls`.

    This is no PipebenchError, so that a planner that tolerates the failure of a callee does not hide it.
    """


def declared_calls(component: Component, options: Value) -> frozenset[str]:
    """Names of planners and schedulers that the component may ask for, without options in brackets.

    They are its `calls`, and the values of its options of type str, where the user names a component.
    """
    named = (getattr(options, name) for name in _text_options(type(options)))
    return frozenset(filter(None, map(plain_name, (*component.calls, *named))))


@cache
def _text_options(options: type[Value]) -> tuple[str, ...]:
    return tuple(info.name for info in msgspec.structs.fields(options) if info.type is str)


def plain_name(text: str) -> str:
    """The name of a component as on the command line, without its options."""
    return text.partition("[")[0].strip()


def undeclared_call_error(component: Component, name: str) -> UndeclaredCall:
    """The error for a call of that name, with the remedy."""
    calls = tuple(sorted({*component.calls, plain_name(name)}))
    where = "its descriptor" if component.load else "the file"
    remedy = f"calls={calls}" if component.load else f"CALLS = {calls}"
    return UndeclaredCall(f"{component.name!r} asks for {name!r} and does not declare it: say {remedy} in {where}")
