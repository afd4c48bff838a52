"""pipebench list: what there is in one slot."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from pipebench.cli.application import open_host, show_new_warnings
from pipebench.cli.terminal import print_json, say, width
from pipebench.hooks.descriptors import SLOTS, Component, Planner
from pipebench.hooks.references import short_reference

if TYPE_CHECKING:
    from pipebench.formats.clusters import LevelFacts


Entries = list[dict[str, Any]]


@click.command()
@click.argument(
    "what",
    type=click.Choice([*SLOTS, "clusters", "frameworks", "profiles", "suites", "exports"]),
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
        from pipebench.formats.profiles.files import FORMATS

        entries = [{"name": f.name, "summary": f.summary, "provider": "built in"} for f in FORMATS] + entries
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


def _clusters() -> Entries:
    from pipebench.formats.clusters import cluster_table

    return [
        {"name": name, "summary": _levels(facts.levels), "about": facts.summary}
        for name, facts in sorted(cluster_table().clusters.items())
    ]


def _frameworks() -> Entries:
    from msgspec import to_builtins

    from pipebench.formats.frameworks.facts import framework_table

    table = framework_table()
    return [
        {"name": name, **to_builtins(facts), "sources": [table.sources[source] for source in facts.sources]}
        for name, facts in sorted(table.all_facts().items())
    ]


def _levels(levels: "Sequence[LevelFacts]") -> str:
    """From the innermost outwards: how many devices, what each sends, what those of a group below share."""
    told, below = [], "device"
    for level in levels:
        group = f" of {level.group}" if level.group else ""
        shared = f" ({level.shared_bandwidth_gb_s:g} shared by a {below})" if level.shared_bandwidth_gb_s else ""
        told.append(f"{level.name}{group}: {level.bandwidth_gb_s:g} GB/s{shared}")
        below = level.name
    return "; ".join(told)


def _profiles() -> Entries:
    from pipebench.formats.profiles.shipped import load_profile, profile_names

    entries = []
    for name in profile_names():
        profile = load_profile(name)
        sizes = ", ".join(str(size) for size in profile.costs[0].micro_batches)
        devices = ", ".join(profile.device_types)
        summary = f"{len(profile.graph.operators)} operators, micro-batches {sizes}, {devices}"
        entries.append({"name": name, "summary": summary})
    return entries


def _suites() -> Entries:
    from pipebench.bench.suites import load_suite, suite_names

    return [{"name": name, "summary": load_suite(name).suite.summary} for name in suite_names()]


def _exports() -> Entries:
    from pipebench.formats.frameworks.targets import TARGETS

    return [
        {"name": name, "summary": f"{target.summary}; checked against {target.revision}"}
        for name, target in TARGETS.items()
    ]


SHIPPED: dict[str, Callable[[], Entries]] = {
    "clusters": _clusters,
    "frameworks": _frameworks,
    "profiles": _profiles,
    "suites": _suites,
    "exports": _exports,
}
