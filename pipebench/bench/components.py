"""Components ready to run: a plugin's, a script's or a program's, with their options parsed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.value import Value
from pipebench.hooks.context import Context
from pipebench.hooks.descriptors import Capabilities, Executor, NoOptions, Planner, Scheduler
from pipebench.hooks.discovery import Provider
from pipebench.hooks.manager import Host
from pipebench.hooks.program import run_program, split_command
from pipebench.hooks.script import check_script, load_script, script_calls
from pipebench.hooks.syntax import Reference, parse_reference, typed_options

USER = Provider("user", "", "file")


@dataclass(frozen=True)
class Ready:
    """A component and its typed options. `label`: as the tables print it, and enough to find it again.

    load: gives its callable; only this runs code of the component, so that a planner's runs nowhere but in
    the child process of its trial. here: it may run in this process, it is the host's own. kernels: whether
    running it on toy problems loads something that a search needs; a program starts anew each time. source: hash
    of what it is made of where that is neither a plugin nor a file nor a program.
    """

    label: str
    component: Planner | Scheduler | Executor
    options: Value
    loader: Callable[[], Callable[..., Any]]
    provider: Provider
    here: bool = False
    kernels: bool = True
    source: str = ""

    @cached_property
    def _callable(self) -> Callable[..., Any]:
        return self.loader()

    def load(self) -> Callable[..., Any]:
        """The callable, imported on first use. Raises PluginNotLoaded."""
        return self._callable


def ready_planner(host: Host, reference: Reference) -> Ready:
    """A planner by name, by file or by program. Raises PipebenchError before anything runs."""
    if reference.is_program:
        command = reference.name.removeprefix("cmd:")
        split_command(command)  # a command that cannot be split is an error now, not a row later
        program = _users_own(reference, lambda: partial(_program, command), "a program")
        return replace(program, kernels=False)
    if reference.is_script:
        check_script(reference.name)
        calls = script_calls(reference.name)
        return _users_own(reference, lambda: load_script(reference.name), "a file", calls)
    return _plugin(host, "planners", reference)


def ready_scheduler(host: Host, name: str) -> Ready:
    """A scheduler by name, options included."""
    return _plugin(host, "schedulers", parse_reference(name))


def ready_executor(host: Host, name: str) -> Ready:
    """An executor by name, options included."""
    return _plugin(host, "executors", parse_reference(name))


def _plugin(host: Host, slot: str, reference: Reference) -> Ready:
    registered = host.find(slot, reference.name)
    component = registered.component
    assert isinstance(component, Planner | Scheduler | Executor)
    options = typed_options(reference, component.options)
    return Ready(str(reference), component, options, lambda: host.load(component), registered.provider)


def _users_own(
    reference: Reference, loader: Callable[[], Callable[..., Any]], what: str, calls: tuple[str, ...] = ()
) -> Ready:
    """calls: beside the schedulers that any planner of a user gets, which it may ask for undeclared."""
    both = Capabilities(regimes=("sync", "async"), replicas=True, per_stage_micro_batch=True)
    component = Planner(name=reference.name, summary=f"planner from {what}", load="", capabilities=both)
    component = replace(component, calls=(*component.default_scheduler.values(), *calls))
    return Ready(str(reference), component, typed_options(reference, NoOptions), loader, USER)


def _program(command: str, problem: Problem, context: Context) -> PlanResult:
    return run_program(command, problem, context)
