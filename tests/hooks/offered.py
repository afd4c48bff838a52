"""What plugins may rely on, as text: hooks, descriptors, the context, what calls take and give.

python -m tests.hooks.offered writes it down for the current version of the API.
"""

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import msgspec

from pipebench.domain.result import PlanResult
from pipebench.hooks import API_VERSION, specs
from pipebench.hooks.context import Context, ProfileRequest, Services
from pipebench.hooks.descriptors import (
    SLOTS,
    Capabilities,
    ExecutorCapabilities,
    NoOptions,
    ScheduleCapabilities,
)
from pipebench.hooks.originals import Original, OriginalCase

Offer = dict[str, dict[str, str]]


def offered() -> Offer:
    """Group to name to signature or type."""
    hooks = {name: _signature(hook) for name, hook in vars(specs).items() if name.startswith("pipebench_")}
    groups: Offer = {"hooks": hooks}
    for kind in (*SLOTS.values(), Capabilities, ScheduleCapabilities, ExecutorCapabilities, ProfileRequest):
        groups[kind.__name__] = _fields(kind)
    groups["Context"] = {**_fields(Context), **_methods(Context)}
    groups["Services"] = _methods(Services)
    for value in (PlanResult, Original, OriginalCase):
        groups[value.__name__] = {
            info.name: _with_default(info.type, info.default) for info in msgspec.structs.fields(value)
        }
    groups["NoOptions"] = {}
    assert not msgspec.structs.fields(NoOptions)
    return groups


def broken_promises(before: Offer, now: Offer) -> list[str]:
    """What has gone, what changed, and what was added without a default."""
    found = []
    for group, members in before.items():
        if group not in now:
            found.append(f"{group} is gone")
            continue
        for name, was in members.items():
            if name not in now[group]:
                found.append(f"{group} {name} is gone")
            elif now[group][name] != was:
                found.append(f"{group} {name} was {was!r}, is {now[group][name]!r}")
        for name, new in now[group].items():
            addition = name not in members and not name.endswith("()") and group != "hooks"
            if addition and " = " not in new:
                found.append(f"{group} {name} is new and has no default")
    return found


def _signature(function: Any) -> str:
    return str(inspect.signature(function)).replace("'", "").replace('"', "")


def _methods(kind: type) -> dict[str, str]:
    return {
        f"{name}()": _signature(member)
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


def _fields(kind: type) -> dict[str, str]:
    return {
        field.name: _with_default(
            field.type,
            field.default
            if field.default is not dataclasses.MISSING
            else field.default_factory()
            if field.default_factory is not dataclasses.MISSING
            else msgspec.NODEFAULT,
        )
        for field in dataclasses.fields(kind)
    }


def _with_default(annotation: Any, default: Any) -> str:
    text = inspect.formatannotation(annotation).replace("'", "")
    if default is msgspec.NODEFAULT:
        return text
    if dataclasses.is_dataclass(default):  # its own fields are listed apart
        return f"{text} = {type(default).__name__}()"
    shown = default.__name__ if callable(default) else repr(default)
    return f"{text} = {shown}"


def main() -> None:
    """Write the current offer beside this file."""
    path = Path(__file__).parent / f"api-{API_VERSION}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(offered()), indent=2) + b"\n")


if __name__ == "__main__":
    main()
