"""What ships besides components, by name: clusters, frameworks, profiles, suites, exports."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipebench.formats.clusters import LevelFacts
    from pipebench.hooks.manager import Host

Entries = list[dict[str, Any]]
"""Each has a name and a summary, and may have more."""


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
        {
            "name": name,
            "summary": entry.summary,
            "gradient_precision": entry.gradient_precision,
            **to_builtins(entry.facts),
            "sources": [table.sources[source] for source in entry.facts.sources],
        }
        for name, entry in sorted(table.all_facts().items())
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


def built_in_formats() -> Entries:
    """Formats of profiles; others are components."""
    from pipebench.formats.profiles.files import FORMATS
    from pipebench.hooks.syntax import describe_options

    return [
        {
            "name": each.name,
            "summary": each.summary,
            "suffix": each.suffix,
            "option": [f"{name}: {kind} = {default}" for name, kind, default in describe_options(each.options)],
        }
        for each in FORMATS
    ]


SHIPPED: dict[str, Callable[[], Entries]] = {
    "clusters": _clusters,
    "frameworks": _frameworks,
    "profiles": _profiles,
    "suites": _suites,
    "exports": _exports,
}
KNOWN: dict[str, Callable[[], Entries]] = {**SHIPPED, "formats": built_in_formats}
"""All that `pipebench info` knows besides components."""


def shipped_under(name: str) -> list[tuple[str, dict[str, Any]]]:
    """What ships besides components under the name, by kind, such as suites."""
    return [(kind, entry) for kind, of in KNOWN.items() for entry in of() if entry["name"] == name]


def kinds_named(host: "Host", name: str) -> list[str]:
    """What `pipebench info` shows under the name, components first: model, suite."""
    from pipebench.hooks.descriptors import SLOTS

    slots = [slot for slot in SLOTS if name in host.slot(slot)]
    return [kind.removesuffix("s") for kind in (*slots, *(kind for kind, _ in shipped_under(name)))]
