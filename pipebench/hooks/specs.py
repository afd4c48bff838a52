"""The hooks: one for each slot. Each is called once, when the command first needs its slot."""

from collections.abc import Iterable

import pluggy

from pipebench.hooks.descriptors import Artefact, Executor, Format, Model, Planner, Profiler, Scheduler

hookspec = pluggy.HookspecMarker("pipebench")


@hookspec
def pipebench_planners() -> Iterable[Planner]:
    """Planners: how to cut a model into stages."""
    return ()


@hookspec
def pipebench_schedulers() -> Iterable[Scheduler]:
    """Schedulers: in which order devices run the tasks of a plan."""
    return ()


@hookspec
def pipebench_executors() -> Iterable[Executor]:
    """Executors: run a plan and its schedule, on devices or simulated."""
    return ()


@hookspec
def pipebench_profilers() -> Iterable[Profiler]:
    """Profilers: what the operators of a graph cost."""
    return ()


@hookspec
def pipebench_models() -> Iterable[Model]:
    """Models: build an operator graph from parameters."""
    return ()


@hookspec
def pipebench_formats() -> Iterable[Format]:
    """Formats: read profiles that other systems wrote."""
    return ()


@hookspec
def pipebench_artefacts() -> Iterable[Artefact]:
    """Artefacts: a paper's figures and tables, each with what to run, the paper's claims and a judge of rows."""
    return ()
