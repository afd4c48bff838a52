"""The inputs of a trial, from which its key follows: components, sources, callees and versions of packages."""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from pipebench.bench.store.code_files import code_file, hash_of
from pipebench.bench.store.reach import Code, component_code, program_code, script_code
from pipebench.bench.store.sources import host_source, program_files
from pipebench.costs.version import MODEL_VERSION
from pipebench.defaults import SIMULATOR
from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import RegimeMode
from pipebench.domain.value import Value, digest
from pipebench.hooks.calls import declared_calls
from pipebench.hooks.descriptors import Component, Planner
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference, typed_options

if TYPE_CHECKING:
    from pipebench.bench.trials.trial import Trial


class ComponentInputs(Value, frozen=True, kw_only=True):
    """A component: its name, every option with its value (defaults included), and the digest of its code.

    source: digest of the code that it reaches by imports, without comments, docstrings and formatting.
    files: option to the digest of the file that it names, for those of its `paths` that name one.
    """

    name: str
    options: dict[str, Any] = {}
    source: str
    files: dict[str, str] = {}


class TrialInputs(Value, frozen=True, kw_only=True):
    """What a trial depends on. Two trials with equal inputs are one; `host` does not count.

    regime: the regime in which the plan is scored.
    planning: the regime in which the planner plans; it differs where the plan is adapted.
    scheduler: None for the plan's own schedule, else the best that any scheduler makes.
    offered: the schedulers to choose from; empty for all that the suite tries.
    called: slot/name to the digest of the code, for each other component that takes part: declared in `calls`,
    named in an option, or a scheduler that the suite tries.
    coarsen: the most blocks of operators that the planner sees; 0: it sees the operators.
    yardstick: whether the suite put it beside what was compared.
    model: costs.version.MODEL_VERSION; 0 in rows older than that version.
    versions: versions of Python and of the packages that the components import.
    timeout_s: seconds.
    memory_bytes: 0 for no limit.
    host: hash of the source of pipebench, for information; it is not in the key.
    """

    problem_id: str
    regime: RegimeMode
    planning: RegimeMode | None = None
    planner: ComponentInputs
    scheduler: ComponentInputs | None = None
    offered: tuple[str, ...] = ()
    executors: tuple[ComponentInputs, ...] = ()
    called: dict[str, str] = {}
    seed: int = 0
    repeat: int = 1
    repetition: int = 0
    timeout_s: float
    memory_bytes: int = 0
    coarsen: int = 0
    yardstick: bool = False
    model: int = 0
    versions: dict[str, str] = {}
    host: str = ""

    def identity_content(self) -> Any:
        """As in stores from before there were such fields, where a trial does without."""
        content = super().identity_content()
        if not self.offered:
            del content["offered"]
        for name in ("coarsen", "yardstick"):
            if not content[name]:
                del content[name]
        for part in (content["planner"], content["scheduler"], *content["executors"]):
            if part and not part["files"]:
                del part["files"]
        return content


def trial_key(inputs: TrialInputs) -> str:
    """SHA-256 of the inputs without `host`, in hex. Canonical JSON: names sorted, equal numbers written alike."""
    return digest(replace(inputs, host=""))


_NAMED_ALIKE = ("torch", "numpy", "numba", "networkx", "highspy")
_NAMES = {"pulp": "PuLP", **{name: name for name in _NAMED_ALIKE}}
"""Import name to distribution, to look up without a walk over all that is installed."""
PLUMBING = frozenset({"click", "jinja2", "joblib", "msgspec", "pluggy", "rich"})
"""What the host itself stands on: values, commands and tables, which change no result."""


def python_version() -> dict[str, str]:
    """The minor version of Python."""
    return {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}


def versions_of(modules: Iterable[str]) -> dict[str, str]:
    """Versions of the distributions that provide these modules, such as solvers.

    The standard library, pipebench and PLUMBING are left out.
    """
    return {name: found for module in modules for name, found in _versions(module).items()}


@cache
def _versions(module: str) -> dict[str, str]:
    if module in sys.stdlib_module_names or module.startswith("pipebench") or module in PLUMBING:
        return {}
    if module in _NAMES:
        return {_NAMES[module]: _version(_NAMES[module])}
    return {name: _version(name) for name in _distributions().get(module, ())}


@cache
def _distributions() -> dict[str, list[str]]:
    return {module: sorted(set(names)) for module, names in packages_distributions().items()}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


CALLABLE_SLOTS = ("planners", "schedulers")
"""Slots whose components another one can ask for by name."""


def trial_inputs(host: Host, trial: "Trial", problem_id: str, planner_source: str | None = None) -> TrialInputs:
    """All that the result of a trial depends on. No component is loaded.

    problem_id: of the problem that the plan is scored on. planner_source: the hash of the planner's content,
    needed where it is neither a plugin nor a file nor a program (a plan made elsewhere).
    Raises PipebenchError when a component does not exist or its source cannot be found.
    """
    planner = trial.planner
    component = planner.component
    assert isinstance(component, Planner)
    regimes = component.capabilities.regimes
    planning = trial.regime if trial.regime in regimes else regimes[0]
    gathered = _Dependencies(host)
    gathered.names |= declared_calls(component, planner.options)
    gathered.names.update(_schedulers(host, component, trial))
    if planner_source is None:
        code = planner_code(component, planner.label)
        gathered.imports |= code.imports
        planner_source = code.digest
    scheduler = None if trial.scheduler is None else gathered.component("schedulers", trial.scheduler)
    executors = tuple(gathered.component("executors", name) for name in trial.executors)
    called = gathered.callee_digests(except_for=("planners", component.name))
    return TrialInputs(
        problem_id=problem_id,
        regime=trial.regime,
        planning=planning,
        planner=_inputs(component, planner.options, planner_source),
        scheduler=scheduler,
        offered=trial.offered,
        executors=executors,
        called=called,
        seed=trial.seed,
        repeat=trial.repeat,
        repetition=trial.repetition,
        timeout_s=trial.timeout_s,
        memory_bytes=trial.memory_bytes,
        coarsen=trial.coarsen,
        yardstick=trial.yardstick,
        model=MODEL_VERSION,
        versions=python_version() | versions_of(gathered.imports),
        host=host_source(),
    )


def planner_code(component: Component, label: str) -> Code:
    """The code of a planner: of its plugin, its script or its program. Raises PipebenchError, ValueError."""
    if component.load:
        return component_code(component.load)
    reference = parse_reference(label)
    if reference.is_program:
        return program_code(program_files(reference.name.removeprefix("cmd:")))
    if reference.is_script:
        return script_code(reference.name)
    raise ValueError(f"planner {label!r} has no source of its own: give planner_source")


def _schedulers(host: Host, planner: Planner, trial: "Trial") -> Iterable[str]:
    """The schedulers that the host tries where the user names none."""
    from pipebench.bench.ordering.schedulers import tried_schedulers  # with the simulator: to read rows needs none

    if trial.offered:
        yield from (parse_reference(name).name for name in trial.offered)
    elif trial.scheduler is None:
        yield from tried_schedulers(host, trial.regime)
        yield parse_reference(planner.default_scheduler.get(trial.regime, "")).name


class _Dependencies:
    """What a trial's components may call, directly or through each other, and the packages that they import."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.names: set[str] = set()
        self.imports: set[str] = set()

    def component(self, slot: str, text: str) -> ComponentInputs:
        """A scheduler or an executor as the user wrote it. Raises PipebenchError when there is none."""
        reference = parse_reference(text)
        component = self.host.find(slot, reference.name).component
        options = typed_options(reference, component.options)
        self.names |= declared_calls(component, options)
        return _inputs(component, options, self._source(component.load))

    def callee_digests(self, except_for: tuple[str, str]) -> dict[str, str]:
        """slot/name to the digest of the code: the simulator, and every component that may be called."""
        sources: dict[str, str] = {}
        self._take("executors", SIMULATOR, sources)
        names: set[str] = set()
        while fresh := self.names - names:
            names |= fresh
            for slot in CALLABLE_SLOTS:
                for name in sorted(fresh):
                    if (slot, name) != except_for:
                        self._take(slot, name, sources)
        return sources

    def _take(self, slot: str, name: str, sources: dict[str, str]) -> None:
        registered = self.host.slot(slot).get(name)
        if registered is None:
            return
        component = registered.component
        with suppress(PipebenchError):  # to call it fails, whatever its source is
            sources[f"{slot}/{name}"] = self._source(component.load)
            self.names |= declared_calls(component, component.options())

    def _source(self, load: str) -> str:
        code = component_code(load)
        self.imports |= code.imports
        return code.digest


def _inputs(component: Component, options: Value, source: str) -> ComponentInputs:
    plain: dict[str, object] = msgspec.to_builtins(options, order="sorted", str_keys=True)
    return ComponentInputs(name=component.name, options=plain, source=source, files=_named_files(component, plain))


def _named_files(component: Component, options: dict[str, Any]) -> dict[str, str]:
    """The digest of each file that is there; `file.py:attribute[option=value]` names one, a folder counts not.

    Raises PipebenchError for a file that cannot be read.
    """
    found: dict[str, str] = {}
    for option in component.paths:
        text = options.get(option)
        if isinstance(text, str):
            short = text.partition("[")[0]
            for path in (text, short, short.rpartition(":")[0]):
                if os.path.isfile(path):
                    found[option] = hash_of([code_file(Path(path), "")])
                    break
    return found
