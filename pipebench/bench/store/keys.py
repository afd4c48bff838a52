"""The inputs of a trial, from which its key follows: the components, their sources and what they may call."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from pipebench.bench.store.code_files import CodeFile, hash_of
from pipebench.bench.store.contents import mentions
from pipebench.bench.store.inputs import ComponentInputs, TrialInputs
from pipebench.bench.store.packages import Package, package_of
from pipebench.bench.store.sources import host_source, program_files, script_files
from pipebench.bench.store.versions import common_versions, versions_of
from pipebench.defaults import SIMULATOR
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value
from pipebench.hooks.descriptors import Component, Planner
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference, typed_options

if TYPE_CHECKING:
    from pipebench.bench.trials.trial import Trial

CALLABLE_SLOTS = ("planners", "schedulers", "executors")
"""Slots whose components a planner can call by name."""


def trial_inputs(host: Host, trial: "Trial", problem_id: str, planner_source: str | None = None) -> TrialInputs:
    """All that the result of a trial depends on. No component is loaded.

    problem_id: of the problem that the plan is scored on. planner_source: the hash of the planner's content,
    needed where it is neither a plugin nor a file nor a program (a plan made elsewhere).
    Raises PipebenchError when a component does not exist or its source cannot be found.
    """
    planner = trial.planner
    files = [] if planner_source is not None else planner_files(planner.component, planner.label)
    gathered = _Gathered(host)
    gathered.add(files)
    gathered.names.update(_defaults(planner.component), option_texts(planner.options), {SIMULATOR})
    scheduler = None if trial.scheduler is None else gathered.component("schedulers", trial.scheduler)
    executors = tuple(gathered.component("executors", name) for name in trial.executors)
    called = gathered.called(except_for=("planners", planner.component.name))
    return TrialInputs(
        problem_id=problem_id,
        regime=trial.regime,
        planner=_inputs(planner.component.name, planner.options, planner_source or hash_of(files)),
        scheduler=scheduler,
        executors=executors,
        called=called,
        seed=trial.seed,
        repeat=trial.repeat,
        repetition=trial.repetition,
        timeout_s=trial.timeout_s,
        memory_bytes=trial.memory_bytes,
        host=host_source(),
        versions=common_versions() | versions_of(gathered.imports),
    )


def planner_files(component: Component, label: str) -> list[CodeFile]:
    """The files of a planner: of its plugin, its script or its program. Raises PipebenchError, ValueError."""
    if component.load:
        return package_of(component.load).files()
    reference = parse_reference(label)
    if reference.is_program:
        return program_files(reference.name.removeprefix("cmd:"))
    if reference.is_script:
        return script_files(reference.name)
    raise ValueError(f"planner {label!r} has no source of its own: give planner_source")


def option_texts(options: Value) -> set[str]:
    """The values of options that are texts: they may name other components."""
    return {value for value in msgspec.to_builtins(options, order="sorted").values() if isinstance(value, str)}


class _Gathered:
    """What a trial's components mention: names of other components, which are followed in turn, and imports."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.names: set[str] = set()
        self.imports: set[str] = set()
        self._sources: dict[Package, str] = {}

    def add(self, files: Sequence[CodeFile]) -> None:
        """Take in what the files mention."""
        found = mentions(files)
        self.names |= found.texts
        self.imports |= found.imports

    def component(self, slot: str, text: str) -> ComponentInputs:
        """A scheduler or an executor as the user wrote it. Raises PipebenchError when there is none."""
        reference = parse_reference(text)
        component = self.host.find(slot, reference.name).component
        options = typed_options(reference, component.options)
        self.names |= option_texts(options)
        return _inputs(component.name, options, self._source(component.load))

    def called(self, except_for: tuple[str, str]) -> dict[str, str]:
        """slot/name to the hash of the source, for every component that is mentioned, directly or not."""
        sources: dict[str, str] = {}
        names: set[str] = set()
        while fresh := self.names - names:
            names |= fresh
            for slot in CALLABLE_SLOTS:
                for name, registered in self.host.slot(slot).items():
                    if name in fresh and (slot, name) != except_for:
                        with suppress(PipebenchError):  # to call it fails, whatever its source is
                            sources[f"{slot}/{name}"] = self._source(registered.component.load)
        return sources

    def _source(self, load: str) -> str:
        """The hash of a plugin; what it mentions is taken in, once for all that it offers."""
        package = package_of(load)
        if package not in self._sources:
            files = package.files()
            self.add(files)
            self._sources[package] = hash_of(files)
        return self._sources[package]


def _inputs(name: str, options: Value, source: str) -> ComponentInputs:
    plain: dict[str, object] = msgspec.to_builtins(options, order="sorted", str_keys=True)
    return ComponentInputs(name=name, options=plain, source=source)


def _defaults(component: Component) -> Iterable[str]:
    return component.default_scheduler.values() if isinstance(component, Planner) else ()
