"""pipebench info: all about one component."""

from dataclasses import asdict
from textwrap import fill
from typing import Any

import click

from pipebench.cli.application import open_host, show_new_warnings
from pipebench.cli.completion import of_every_slot, one_of
from pipebench.cli.shipped import KNOWN, shipped_under
from pipebench.cli.terminal import print_json, say, width
from pipebench.domain.errors import unknown
from pipebench.hooks.descriptors import SLOTS
from pipebench.hooks.manager import Registration
from pipebench.hooks.syntax import describe_options


@click.command()
@click.argument("name", shell_complete=one_of(of_every_slot))
@click.option("--cite", is_flag=True, help="Only the reference and every deviation from it.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(name: str, cite: bool, as_json: bool) -> int:
    """Show a component's summary, options, capabilities, reference and deviations.

    Where no component has the name: what is known of a cluster, framework, profile, suite, export or format.
    """
    host = open_host()
    components = [(slot, host.slot(slot)[name]) for slot in SLOTS if name in host.slot(slot)]
    shipped = [] if components else shipped_under(name)
    if not components and not shipped:
        names = {known for slot in SLOTS for known in host.slot(slot)}
        raise unknown("component", name, names | {entry["name"] for of in KNOWN.values() for entry in of()})
    show_new_warnings(host)
    described = [_describe(slot, registered) for slot, registered in components]
    if as_json:
        print_json([*described, *({"kind": kind.removesuffix("s"), **entry} for kind, entry in shipped)])
        return 0
    for entry in described:
        _print(entry, cite)
    for kind, entry in shipped:
        _print_shipped(kind, entry)
    return 0


def _describe(slot: str, registered: Registration) -> dict[str, Any]:
    component = registered.component
    capabilities = getattr(component, "capabilities", None)
    return {
        "name": component.name,
        "slot": slot,
        "summary": component.summary,
        "provider": str(registered.provider),
        "fidelity": getattr(component, "fidelity", ""),
        "options": [
            {"name": name, "type": kind, "default": default}
            for name, kind, default in describe_options(component.options)
        ],
        "capabilities": asdict(capabilities) if capabilities is not None else {},
        "default_scheduler": dict(getattr(component, "default_scheduler", {})),
        "reference": component.reference,
        "deviations": list(component.deviations),
    }


def _print_shipped(kind: str, entry: dict[str, Any]) -> None:
    say(f"{entry['name']} ({kind.removesuffix('s')}): {entry['summary']}")
    for name, value in entry.items():
        if name not in ("name", "summary"):
            for each in value if isinstance(value, (list, tuple)) else (value,):
                say(f"  {name:<18} {each}")


def _print(entry: dict[str, Any], cite: bool) -> None:
    facts: list[tuple[str, object]] = []
    if not cite:
        say(f"{entry['name']} ({entry['slot'].removesuffix('s')}): {entry['summary']}")
        facts.append(("from", entry["provider"]))
        if entry["fidelity"]:
            facts.append(("fidelity", entry["fidelity"]))
        facts += [("option", f"{each['name']}: {each['type']} = {each['default']}") for each in entry["options"]]
        facts += [
            (name, ", ".join(value) if isinstance(value, tuple) else value)
            for name, value in entry["capabilities"].items()
        ]
        facts += [("scheduler", f"{name} ({regime})") for regime, name in entry["default_scheduler"].items()]
    if entry["reference"]:
        facts.append(("reference", entry["reference"]))
    facts += [("deviation", deviation) for deviation in entry["deviations"]]
    indent = 4 + max((len(name) for name, _ in facts), default=0)
    columns = max(width(), 2 * indent)
    for name, value in facts:
        lead = f"{f'  {name}':<{indent}}"
        below = " " * indent
        say(fill(str(value), columns, initial_indent=lead, subsequent_indent=below, break_long_words=False))
