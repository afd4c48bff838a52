"""A call in a child process gives what the call itself gives: result, notes, counters, progress, errors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipebench.bench.cage.calls import how_it_ended
from pipebench.bench.cage.installed import installed_host
from pipebench.bench.problems.plugin_sources import build_graph, profile_graph
from pipebench.bench.searches.isolation.conversation import ChildExit
from pipebench.domain.errors import InfeasibleProblem, InvalidValue, PipebenchError, UnsupportedProblem
from pipebench.domain.value import Value
from pipebench.hooks.context import Context, ProfileRequest
from pipebench.hooks.descriptors import SLOTS
from pipebench.hooks.manager import Host
from pipebench.hooks.option_types import (
    OptionsDescription,
    UndescribedType,
    annotation_of,
    describe_class,
    options_class,
    type_data,
)
from pipebench.hooks.syntax import describe_options, parse_reference
from tests.builders import chain_problem, cluster, stages_plan
from tests.hooks.distributions import install

PROBLEM = chain_problem([10, 10], [20, 20], cluster(2, memory=1000), weights=[7, 8], mode="sync", mini_batch=4)
PLAN = stages_plan([[0], [1]])
MISTAKEN = """
from pipebench.domain.graph import Operator, OperatorGraph, Tensor
from pipebench.domain.profile import OperatorCosts
from pipebench.domain.value import Value
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Model, Profiler

PIPEBENCH_API = 1

class Options(Value, frozen=True, kw_only=True):
    layers: int = 1

@hookimpl
def pipebench_models():
    return [Model(name="mine", summary="", load="{module}:build", options=Options)]

@hookimpl
def pipebench_profilers():
    return [Profiler(name="negative", summary="", load="{module}:profile")]

def build(context):
    layers = context.options.layers
    return OperatorGraph(name="mine", operators=tuple(Operator(name=f"op{i}", kind="x") for i in range(layers)))

def profile(graph, context):
    return OperatorCosts(operator="op0", forward_s=(-1.0,), backward_s=(2.0,))
"""
SOURCE = """
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.value import Value, require
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Planner

PIPEBENCH_API = 1

class Options(Value, frozen=True, kw_only=True):
    how: str = "plan"
    depth: int = 1

    def __post_init__(self):
        require(self.depth > 0, f"depth={self.depth} is not above 0")

@hookimpl
def pipebench_planners():
    return [Planner(name="telling", summary="", load="{module}:plan", options=Options, calls=("uniform",))]

def plan(problem, context):
    context.note("a note")
    context.count("tried", context.options.depth)
    context.report(0.5, "half")
    if context.options.how == "infeasible":
        raise InfeasibleProblem("no room", "more memory", claimed_s=2.0)
    if context.options.how == "unsupported":
        raise UnsupportedProblem("not this")
    return context.plan("uniform", problem).plan
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "telling-one", SOURCE)
    return installed_host()


def telling(host: Host, **options: Any) -> tuple[Callable[[], Any], Context, list[tuple[float, str]]]:
    component = host.find("planners", "telling").component
    told: list[tuple[float, str]] = []
    context = Context(options=component.options(**options), report=lambda done, text: told.append((done, text)))
    return lambda: host.load(component)(PROBLEM, context), context, told


def test_result_notes_counters_and_progress_cross(host: Host) -> None:
    work, context, told = telling(host, depth=3)
    assert [stage.operators for stage in work().plan.stages] == [stage.operators for stage in PLAN.stages]
    assert context.notices == ["a note"]
    assert context.counters["tried"] == 3
    assert told == [(0.5, "half")]


def test_errors_keep_their_kind(host: Host) -> None:
    work, context, _ = telling(host, how="infeasible")
    with pytest.raises(InfeasibleProblem, match="no room") as caught:
        work()
    assert (caught.value.hint, caught.value.claimed_s) == ("more memory", 2.0)
    assert context.notices == ["a note"]
    with pytest.raises(UnsupportedProblem, match="not this"):
        telling(host, how="unsupported")[0]()


def test_the_rules_of_options_are_applied(host: Host) -> None:
    component = host.find("planners", "telling").component
    with pytest.raises(PipebenchError, match=r"^depth=-1 is not above 0$"):
        component.options(depth=-1)


def test_a_host_of_descriptions_is_the_host_that_imports() -> None:
    described, imported = installed_host(), Host()
    for slot in SLOTS:
        assert list(described.slot(slot)) == list(imported.slot(slot))
        for name, registered in imported.slot(slot).items():
            same = described.slot(slot)[name]
            assert (same.provider, same.entry) == (registered.provider, registered.entry)
            options = registered.component.options
            assert describe_options(same.component.options) == describe_options(options)
            for field in type(registered.component).__dataclass_fields__:
                if field != "options":
                    assert getattr(same.component, field) == getattr(registered.component, field)


def test_a_model_is_the_same_graph() -> None:
    reference = parse_reference("transformer[layers=2]")
    assert build_graph(installed_host(), reference) == build_graph(Host(), reference)


class Made(Value, frozen=True, kw_only=True):
    """Options.

    - one: a number. - two: a choice. - three: numbers.
    """

    one: int | None = 1
    two: float = 2
    three: tuple[int, ...] = (1, 2)
    four: tuple[int, str] = (1, "x")
    five: list[float] = msgspec.field(default_factory=lambda: [1.5])


def test_a_class_of_options_is_built_again() -> None:
    described = describe_class(Made)
    crossed = msgspec.msgpack.decode(msgspec.msgpack.encode(described), type=OptionsDescription)
    made = options_class(crossed)
    assert describe_options(made) == describe_options(Made)
    assert msgspec.to_builtins(made()) == msgspec.to_builtins(Made())
    assert made().three == (1, 2)  # type: ignore[attr-defined]
    assert "a choice" in (made.__doc__ or "")
    with pytest.raises(msgspec.ValidationError, match=r"\$\.one"):
        msgspec.convert({"one": "x"}, made)


@pytest.mark.parametrize("kind", [dict[str, int], object, bytes, set[int], list])
def test_other_types_of_options_are_named(kind: Any) -> None:
    with pytest.raises(UndescribedType, match="its type is"):
        type_data(kind)


@pytest.mark.parametrize("data", ["dict", ["union"], ["set", "int"], 3, None])
def test_data_that_describe_no_type_are_refused(data: Any) -> None:
    with pytest.raises(UndescribedType):
        annotation_of(data)


def test_a_wrong_value_is_told_with_the_component_that_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "mistaken-one", MISTAKEN)
    host = installed_host()
    with pytest.raises(InvalidValue, match=r"^model mine\[layers=0\]: graph 'mine' has no operators$"):
        build_graph(host, parse_reference("mine[layers=0]"))
    request = ProfileRequest(devices=(), micro_batches=(1,))
    with pytest.raises(InvalidValue, match=r"^profiler negative: operator 'op0': forward_s\[0\] is -1\.0"):
        profile_graph(host, "negative", build_graph(host, parse_reference("mine")), request)


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (ChildExit(code=3), "its process ended with exit code 3 before it returned"),
        (ChildExit(code=-9, stopped=True), "no result within 5 s"),
        (ChildExit(lost=True), "it brought down the process that runs plugins"),
        (ChildExit(code=-9, flaw="a frame of 9 bytes"), "its process sent a frame of 9 bytes"),
    ],
)
def test_how_a_call_without_a_result_ended(ended: ChildExit, words: str) -> None:
    assert how_it_ended(ended, 5.0) == words
