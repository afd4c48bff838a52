"""Components ready to run: a plugin's, a script's or a program's, with their options parsed."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from pipebench.defaults import BEST, SEARCH_PLANNER
from pipebench.documents.printable import in_unicode
from pipebench.domain.errors import PipebenchError, UnsupportedProblem
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.value import Value
from pipebench.hooks.descriptors import Capabilities, Component, Executor, NoOptions, Planner, Scheduler
from pipebench.hooks.discovery import Provider
from pipebench.hooks.manager import Host
from pipebench.hooks.programs.program import find_program, run_program
from pipebench.hooks.programs.program_call import ProgramOptions
from pipebench.hooks.programs.script import check_script, load_script, script_calls
from pipebench.hooks.syntax import Reference, parse_reference, typed_options

USER = Provider("user", "", "file")
ANYTHING = Capabilities(
    regimes=("sync", "async"),
    replicas=True,
    tensor_parallel=True,
    recompute=True,
    non_contiguous=True,
    per_stage_micro_batch=True,
    expert_parallel=True,
    context_parallel=True,
    sharding_groups=True,
)
"""A file and a program have no descriptor: their plans may use whatever there is."""


@dataclass(frozen=True, slots=True)
class LackingRanks:
    """What a planner does not know of ranks that share something out.

    what: of its stages, with the number of ranks. capability, option: that name a way out.
    """

    what: str
    capability: str
    option: str


def lacking_ranks(able: Capabilities, regime: Regime) -> LackingRanks | None:
    """The first kind of ranks in the regime that a planner does not plan for, None where it plans for all."""
    ranks = regime.expert_ranks
    if ranks > 1 and not able.expert_parallel:
        what = f"stages whose ranks share out experts (expert parallelism {ranks})"
        return LackingRanks(what, "expert_parallel", "--ep")
    ranks = regime.context_ranks
    if ranks > 1 and not able.context_parallel:
        what = f"stages whose ranks share out sequences (context parallelism {ranks})"
        return LackingRanks(what, "context_parallel", "--cp")
    if regime.shards_in_groups and able.replicas and not able.sharding_groups:
        what = f"replicas that share out weights or state in groups ({regime.sharding_ranks} ranks)"
        return LackingRanks(what, "sharding_groups", "--sharding-ranks")
    return None


def refuse_ranks(component: Component, problem: Problem) -> None:
    """Raise UnsupportedProblem where ranks share something out and the planner does not know what that costs."""
    assert isinstance(component, Planner)
    lacking = lacking_ranks(component.capabilities, problem.regime)
    if lacking is not None:
        raise UnsupportedProblem(
            f"{component.name} does not plan {lacking.what}",
            f"name one that does (`pipebench info NAME` says {lacking.capability} True), or leave "
            f"{lacking.option} out",
        )


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

    @property
    def kernel_owner(self) -> str:
        """Whose compiled kernels it reads: its distribution's, which a file and a program do not have."""
        if self.provider is not USER:
            return self.provider.distribution
        whole = os.path.abspath(self.component.name)
        return f"_file-{hashlib.sha256(whole.encode(errors='surrogateescape')).hexdigest()[:16]}"

    @cached_property
    def _callable(self) -> Callable[..., Any]:
        return self.loader()

    def load(self) -> Callable[..., Any]:
        """The callable, imported on first use. Raises PluginNotLoaded."""
        return self._callable


def ready_planner(host: Host, reference: Reference) -> Ready:
    """A planner by name, by file or by program. Raises PipebenchError before anything runs."""
    if reference.is_program:
        # Now, in the folder in which it was typed: it may run in another. A wrong command is an error, not a row.
        program = find_program(reference.name.removeprefix("cmd:"))
        # Without options it is the component that it was before programs had any: stored rows stay.
        options = ProgramOptions(options=reference.options) if reference.options else NoOptions()
        ready = _users_own(reference, lambda: partial(run_program, program), "a program", options)
        return replace(ready, kernels=False)
    if reference.is_script:
        check_script(reference.name)
        calls = script_calls(reference.name)
        options = typed_options(reference, NoOptions)
        return _users_own(reference, lambda: load_script(reference.name), "a file", options, calls)
    if reference.name == BEST:
        raise PipebenchError(
            f"{BEST} is no entrant: it runs every planner with a part of its time, each in a process of its own, "
            "so its search time is no planner's",
            f"name {SEARCH_PLANNER}, the search that it ends with, beside the planners; or pipebench plan {BEST}",
        )
    return _plugin(host, "planners", reference)


def ready_scheduler(host: Host, name: str) -> Ready:
    """A scheduler by name, options included."""
    return _plugin(host, "schedulers", parse_reference(name))


def ready_executor(host: Host, name: str) -> Ready:
    """An executor by name, options included."""
    return _plugin(host, "executors", parse_reference(name))


def _plugin(host: Host, slot: str, reference: Reference) -> Ready:
    _require_unicode(reference)
    registered = host.find(slot, reference.name)
    component = registered.component
    assert isinstance(component, Planner | Scheduler | Executor)
    options = typed_options(reference, component.options)
    return Ready(str(reference), component, options, lambda: host.load(component), registered.provider)


def _require_unicode(reference: Reference) -> None:
    """Raises PipebenchError for a component that no row can name."""
    written = in_unicode(str(reference))
    if written != str(reference):
        raise PipebenchError(
            f"'{written}' is not UTF-8, rows cannot name it",
            "rename the file or the folder, or give a link that has another name",
        )


def _users_own(
    reference: Reference,
    loader: Callable[[], Callable[..., Any]],
    what: str,
    options: Value,
    calls: tuple[str, ...] = (),
) -> Ready:
    """calls: beside the schedulers that any planner of a user gets, which it may ask for undeclared."""
    _require_unicode(reference)
    component = Planner(name=reference.name, summary=f"planner from {what}", load="", capabilities=ANYTHING)
    component = replace(component, calls=(*component.default_scheduler.values(), *calls))
    return Ready(str(reference), component, options, loader, USER)
