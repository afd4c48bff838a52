"""pipebench list: what there is in one slot."""

from typing import Any

import click

from pipebench.cli.application import open_host, show_new_warnings
from pipebench.cli.parameters import OneOf
from pipebench.cli.shipped import SHIPPED, Entries, built_in_formats
from pipebench.cli.terminal import print_json, say, width
from pipebench.hooks.descriptors import SLOTS, Component, Planner
from pipebench.hooks.references import short_reference


@click.command()
@click.argument(
    "what",
    type=OneOf([*SLOTS, *SHIPPED]),
    default="planners",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(what: str, as_json: bool) -> int:
    """List planners (the default), another slot, or what ships: clusters, frameworks, profiles, suites, exports.

    With --json a framework has all its facts and where they come from.
    """
    entries = SHIPPED[what]() if what in SHIPPED else _components(what)
    if as_json:
        print_json(entries)
        return 0
    if what == "planners":
        from pipebench.report.text.planners import planner_lines

        for line in planner_lines(entries, width()):
            say(line)
        return 0
    longest = max((len(entry["name"]) for entry in entries), default=0)
    for entry in entries:
        say(f"{entry['name']:<{longest}}  {entry['summary']}".rstrip())
    return 0


def _components(slot: str) -> Entries:
    host = open_host()
    entries = [
        {
            "name": name,
            "summary": registered.component.summary,
            "provider": f"{registered.provider.distribution} {registered.provider.version}",
            **_about(registered.component),
        }
        for name, registered in host.slot(slot).items()
    ]
    if slot == "formats":
        entries = [
            {"name": each["name"], "summary": each["summary"], "provider": "built in"}
            for each in built_in_formats()
        ] + entries
    show_new_warnings(host)
    return entries


def _about(component: Component) -> dict[str, Any]:
    """What else is said of a planner: its paper in short, and what its plans may have."""
    if not isinstance(component, Planner):
        return {}
    can = component.capabilities
    return {
        "paper": short_reference(component.reference),
        "regimes": can.regimes,
        "replicas": "in turn" if can.replicas and can.round_robin else "split" if can.replicas else "none",
        "graph": "chain" if can.graphs == "chain" else "any",
    }
