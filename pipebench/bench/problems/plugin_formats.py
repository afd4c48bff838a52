"""Formats that plugins bring, as the readers that the host uses."""

from functools import partial
from typing import Any

from pipebench.bench.returned import called, exact_profile
from pipebench.domain.profile import Profile
from pipebench.formats.profile_format import ProfileFormat
from pipebench.hooks.context import Context
from pipebench.hooks.descriptors import Format
from pipebench.hooks.manager import Host


def plugin_formats(host: Host) -> list[ProfileFormat]:
    """One reader for each suffix of each format; they are chosen by suffix, never by content."""
    components = [registered.component for registered in host.slot("formats").values()]
    return [
        ProfileFormat(
            name=component.name,
            summary=component.summary,
            suffix=suffix,
            options=component.options,
            recognises=_never,
            read=partial(_read, host, component),
        )
        for component in components
        if isinstance(component, Format)
        for suffix in component.suffixes
    ]


def _never(data: bytes) -> bool:
    del data
    return False


def _read(host: Host, component: Format, data: bytes, source: str, options: Any) -> Profile:
    work, context = host.load(component), Context(options=options, request=source)
    who = f"format {component.name!r}"
    return exact_profile(who, called(who, lambda: work(data, context)))
