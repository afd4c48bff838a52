"""Values of options and arguments, completed by the shell. Nothing here prints, and no failure reaches the shell.

The names of components come from the same host as `pipebench list`: plugins are described, not imported.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from pipebench.hooks.manager import Host

Names = Callable[[], Mapping[str, str]]
"""Gives the names that there are, each with a line of help, which may be empty."""
Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]
"""As click's `shell_complete` of a parameter."""


def one_of(names: Names) -> Complete:
    """Completes one name; files where no name starts so."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        del ctx, param
        return _items(names, "", incomplete, ())

    return complete


def some_of(names: Names) -> Complete:
    """Completes the last of several names by commas, and keeps what stands before it."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        del ctx, param
        before, last = last_name(incomplete)
        return _items(names, before, last, before.split(","))

    return complete


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The files of the shell."""
    from click.shell_completion import CompletionItem

    del ctx, param
    return [CompletionItem(incomplete, type="file")]


def last_name(text: str) -> tuple[str, str]:
    """What stands before the last name of a list, its comma included, and that name. Commas in brackets stay."""
    depth, start = 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            start = place + 1
    return text[:start], text[start:]


def _items(
    names: Names, before: str, start: str, without: "list[str] | tuple[str, ...]"
) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    try:
        known = names()
    except Exception:  # a message would stand in the middle of what the user types
        return []
    found = [
        CompletionItem(f"{before}{name}", help=text or None)
        for name, text in known.items()
        if name.startswith(start) and name not in without
    ]
    return found or ([] if before else [CompletionItem(start, type="file")])


def _host() -> "Host":
    from pipebench.bench.cage.installed import installed_host

    return installed_host()


def of_slot(slot: str) -> Names:
    """The names of the components of one slot."""
    return lambda: {name: each.component.summary for name, each in _host().slot(slot).items()}


def of_every_slot() -> Mapping[str, str]:
    """The names of all components."""
    from pipebench.hooks.descriptors import SLOTS

    host = _host()
    return {name: each.component.summary for slot in SLOTS for name, each in host.slot(slot).items()}


def planners_and_best() -> Mapping[str, str]:
    """The planners, and the word for all of them."""
    from pipebench.defaults import BEST

    return {BEST: "every planner, the best plan that fits", **of_slot("planners")()}


def suites() -> Mapping[str, str]:
    """The suites that ship."""
    from pipebench.bench.suites import suite_names

    return dict.fromkeys(suite_names(), "")


def profiles() -> Mapping[str, str]:
    """The profiles that ship."""
    from pipebench.formats.profiles.shipped import profile_names

    return dict.fromkeys(profile_names(), "")


def frameworks() -> Mapping[str, str]:
    """The training frameworks whose steps can be priced."""
    from pipebench.formats.frameworks.facts import framework_table

    return {name: facts.summary for name, facts in framework_table().all_facts().items()}


def clusters() -> Mapping[str, str]:
    """The clusters that ship."""
    from pipebench.formats.clusters import cluster_names

    return dict.fromkeys(cluster_names(), "")


def documents() -> Mapping[str, str]:
    """The kinds of documents that have a schema."""
    from pipebench.documents.document import KINDS

    return dict.fromkeys((*KINDS, "suite"), "")


def glossary_words() -> Mapping[str, str]:
    """The terms of the glossary."""
    from pipebench.documents.glossary import subjects

    return {term.name: term.first_sentence for subject in subjects() for term in subject.terms}
