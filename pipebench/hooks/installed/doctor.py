"""Faults of the installed plugins, each with the command that mends it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution, distributions

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from pipebench.hooks import API_VERSION
from pipebench.hooks.api import is_newer
from pipebench.hooks.discovery import SUITE, UPGRADE, Trouble
from pipebench.hooks.installed.inventory import PluginEntry


def unmet(name: str) -> list[tuple[str, str]]:
    """Requirements of an installed distribution that are missing or have another version, each with what is
    installed.

    Left out: requirements of extras, those whose marker does not apply here, and requirements and versions that do
    not follow the standards (PEP 508, PEP 440).
    """
    try:
        needs = distribution(name).requires or []
    except PackageNotFoundError:
        return []
    found = []
    for need in needs:
        try:
            requirement = Requirement(need)
        except InvalidRequirement:
            continue
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        needed = f"{requirement.name}{requirement.specifier}"
        try:
            version = distribution(requirement.name).version
        except PackageNotFoundError:
            found.append((needed, "it is not installed"))
            continue
        try:
            suits = requirement.specifier.contains(version, prereleases=True)
        except InvalidVersion:
            continue
        if not suits:
            found.append((needed, f"{version} is installed"))
    return found


def installed_twice(names: set[str]) -> dict[str, list[str]]:
    """The distributions named whose metadata is found more than once, with the versions.

    names: canonical (`packaging.utils.canonicalize_name`).
    """
    versions: dict[str, list[str]] = {}
    for each in distributions():
        name = canonicalize_name(each.name) if each.name else ""
        if name in names:
            versions.setdefault(name, []).append(each.version or "?")
    return {name: each for name, each in versions.items() if len(set(each)) > 1}


SLOW_CPU_S = 0.25
"""Of loading a plugin: more is told where no package is to blame. Those that ship take a few ms."""
Loads = Callable[[list[tuple[str, str]]], "Loading"]
"""Slots and names of components to what came of loading their code in a process of its own."""


@dataclass(frozen=True, slots=True)
class Loading:
    """failed: slot, name, why, and the missing module. ended: how the process ended, where it sent nothing."""

    failed: list[tuple[str, str, str, str | None]] = field(default_factory=list)
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Ailment:
    """One fault: whose it is, what it is, and the command that mends it.

    author: what the plugin's author does about it; empty where `what` says it all.
    """

    plugin: str
    what: str
    remedy: str
    author: str = ""


def examine(listed: Iterable[PluginEntry], load: Loads) -> list[Ailment]:
    """All faults: plugins that do not load, components that do not load, missing requirements, imports that are
    slow, print or change the current folder.
    """
    entries = list(listed)
    found = [ailment for entry in entries for ailment in _plugin(entry)]
    names: dict[str, str] = {
        canonicalize_name(entry.provider.distribution): entry.provider.distribution for entry in entries
    }
    names[SUITE] = SUITE
    for name in names.values():
        found += [Ailment(name, f"needs {need}: {there}", f"pip install '{need}'") for need, there in unmet(name)]
        found += _components([entry for entry in entries if entry.provider.distribution == name], name, load)
    for name, versions in installed_twice(set(names)).items():
        what = f"is installed more than once ({', '.join(versions)})"
        found.append(Ailment(names[name], what, f"pip install --force-reinstall {names[name]}"))
    return list(dict.fromkeys(found))


def _plugin(entry: PluginEntry) -> Iterator[Ailment]:
    name, who, module = entry.provider.distribution, str(entry.provider), entry.module.partition(":")[0]
    upgrade = f"pip install --upgrade {name}"
    if entry.error is not None:
        yield Ailment(who, entry.error, _mend(name, module, entry.missing), _dependency(module, entry.missing))
        return
    if entry.state == "left out":
        remedy = UPGRADE if is_newer(entry.api) else upgrade
        yield Ailment(who, entry.troubles[0].summary, remedy, _version(entry.api, module))
        return
    for trouble in entry.troubles:
        remedy = _without(name) if trouble.kind == "clash" else upgrade
        yield Ailment(who, trouble.summary, remedy, _correction(trouble, module))
    if entry.heavy:
        what = f"imports {', '.join(entry.heavy)} in every command ({entry.import_cpu_s * 1e3:.0f} ms)"
        yield Ailment(who, what, upgrade, "import it in the module that `load` names")
    elif entry.import_cpu_s >= SLOW_CPU_S or entry.waits:
        what = f"takes {max(entry.import_cpu_s, entry.import_wall_s):.1f} s in every command while it is loaded"
        yield Ailment(who, what, upgrade, "do the work in the module that `load` names")
    if entry.printed:
        what = f"prints {entry.printed!r} while it is loaded"
        yield Ailment(who, what, upgrade, f"take the print out of what {module} runs when it is imported")
    if entry.moves:
        what = "changes the current folder while it is loaded"
        yield Ailment(who, what, upgrade, f"take the change out of what {module} runs when it is imported")


def _version(stated: int | str | None, module: str) -> str:
    """What an author does about the version of the hook API that the plugin's module states."""
    if isinstance(stated, int):
        return "" if is_newer(stated) else f"write it for hook API {API_VERSION}"
    return f"write PIPEBENCH_API = {API_VERSION} in the module {module}"


def _components(entries: list[PluginEntry], name: str, load: Loads) -> Iterator[Ailment]:
    """Load every component's callable in a process of its own, as a command would."""
    named = [(slot, each) for entry in entries for slot, names in entry.slots.items() for each in names]
    if not named:
        return
    done = load(named)
    if done.ended:
        yield Ailment(name, f"while its components are imported {done.ended}", _without(name))
        return
    modules = {entry.module.partition(":")[0].partition(".")[0] for entry in entries}
    for slot, component, what, missing in done.failed:
        module = next(iter(modules)) if missing is None or missing.partition(".")[0] in modules else ""
        which = f"{slot.removesuffix('s')} {component}"
        own = f"correct `load` of the {which}, or the module that it names"
        yield Ailment(f"{name}: {which}", what, _mend(name, module, missing), _dependency(module, missing) or own)


def _mend(name: str, module: str, missing: str | None) -> str:
    """The command that mends an import error: install the missing module, or install the plugin again if it is its
    own.
    """
    if missing is None:
        return f"pip install {'--force-reinstall' if name == SUITE else '--upgrade'} {name}"
    top = missing.partition(".")[0]
    if top == module.partition(".")[0] or top == SUITE:
        return f"pip install --force-reinstall {name}"
    needed = [
        need
        for need, _ in unmet(name)
        if canonicalize_name(Requirement(need).name).startswith(canonicalize_name(top))
    ]
    return f"pip install '{needed[0]}'" if needed else f"pip install {top}"


def _dependency(module: str, missing: str | None) -> str:
    """What an author does about a module that is not found and that is not the plugin's own."""
    top = (missing or "").partition(".")[0]
    own = top in ("", SUITE, module.partition(".")[0])
    return "" if own else f"name the distribution of {top} in the dependencies of pyproject.toml"


def _correction(trouble: Trouble, module: str) -> str:
    """What an author does about the trouble of a plugin that is loaded in part."""
    if trouble.kind == "no hook":
        return f"rename it in the module {module}: {trouble.remedy.partition(' Valid: ')[0]}"
    if trouble.kind == "no mark":
        return f"{trouble.remedy} in the module {module}"
    if trouble.kind == "clash":
        return "give it another name"
    return f"correct it in the module {module}"


def _without(name: str) -> str:
    """The command that removes a harmful plugin.

    The suite itself, and so a plugin that ships, is installed again.
    """
    return f"pip install --force-reinstall {name}" if name == SUITE else f"pip uninstall {name}"
