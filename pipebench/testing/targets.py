"""What is checked: the components behind a name, a distribution or a file, and what its author waives."""

from dataclasses import dataclass, field
from importlib.metadata import EntryPoint

from packaging.utils import canonicalize_name

from pipebench.bench.components import USER, ready_planner
from pipebench.domain.errors import PipebenchError, PluginNotLoaded, unknown
from pipebench.hooks.descriptors import SLOTS, Component
from pipebench.hooks.discovery import Provider, installed_entry_points, provider_of
from pipebench.hooks.manager import Host, Registration
from pipebench.hooks.syntax import parse_reference
from pipebench.testing.sessions import ComponentCalls

WAIVED = "PIPEBENCH_WAIVED"


@dataclass(frozen=True, slots=True)
class CheckTarget:
    """One component under check. waived: "name of a check" to the author's reason.

    point: None for a file and a program. calls: what it is asked.
    """

    slot: str
    label: str
    component: Component
    provider: Provider
    waived: dict[str, str]
    point: EntryPoint | None = None
    calls: ComponentCalls = field(default_factory=ComponentCalls)


def check_targets(host: Host, target: str) -> list[CheckTarget]:
    """The components that `target` names: a component, a distribution, an entry point, ./file.py or cmd:program.

    Raises PipebenchError with the nearest name when there are none, and with the cause when a plugin of that
    name could not be loaded.
    """
    reference = parse_reference(target)
    if reference.is_script or reference.is_program:
        component = ready_planner(host, reference).component
        return [CheckTarget("planners", target, component, USER, {})]
    points = {str(provider_of(point)): point for point in installed_entry_points()}
    found = [
        CheckTarget(
            slot=slot,
            label=name if name != reference.name else target.strip(),
            component=registered.component,
            provider=registered.provider,
            waived=_waivers(host, registered, name),
            point=points.get(str(registered.provider)),
        )
        for slot in SLOTS
        for name, registered in host.slot(slot).items()
        if _means(reference.name, name, registered.provider)
    ]
    if found:
        return found
    raise _unknown_target(host, reference.name, list(points.values()))


def plugin_names() -> list[str]:
    """Distributions and entry points, each once."""
    providers = [provider_of(point) for point in installed_entry_points()]
    return sorted({name for p in providers for name in (p.distribution, p.entry_point)})


def _means(target: str, component: str, provider: Provider) -> bool:
    return target == component or canonicalize_name(target) in (
        canonicalize_name(provider.distribution),
        canonicalize_name(provider.entry_point),
    )


def _unknown_target(host: Host, name: str, points: list[EntryPoint]) -> PipebenchError:
    providers = [provider_of(point) for point in points]
    if any(_means(name, "", provider) for provider in providers):
        if any(_means(name, "", each.provider) for each in host.troubles):
            return PluginNotLoaded(f"plugin {name!r} could not be loaded", "see pipebench plugin doctor")
        hint = "its module has functions such as pipebench_planners, marked with @hookimpl of pipebench.hooks"
        return PipebenchError(f"plugin {name!r} offers nothing that can be checked", hint)
    for each in host.troubles:
        if each.kind == "component" and each.component == name:
            what = f"{each.slot.removesuffix('s')} {name!r} could not be loaded"
            return PluginNotLoaded(what, "see pipebench plugin doctor")
    names = {known for slot in SLOTS for known in host.slot(slot)} | set(plugin_names())
    return unknown("plugin or component", name, names)


def _waivers(host: Host, registered: Registration, component: str) -> dict[str, str]:
    """Of the plugin module's PIPEBENCH_WAIVED, {"component:check": "reason"}, those of one component.

    Raises PipebenchError when it is no such mapping, or a reason is missing.
    """
    declared = host.constants(registered.entry).get(WAIVED, {})
    if not isinstance(declared, dict) or not all(
        isinstance(key, str) and ":" in key and isinstance(reason, str) and reason.strip()
        for key, reason in declared.items()
    ):
        raise PipebenchError(f"{WAIVED} of {registered.entry} is wrong", '{"component:check": "reason"}')
    pairs = [(key.rpartition(":"), reason) for key, reason in declared.items()]
    return {check: reason for (owner, _, check), reason in pairs if owner == component}
