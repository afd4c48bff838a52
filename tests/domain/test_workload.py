"""One declaration of a workload: options, suites, the API and cells have its fields, and carry its values."""

import inspect
from functools import cache
from importlib import import_module
from types import NoneType
from typing import Annotated, Any, Unpack, get_args, get_origin, get_type_hints

import click
import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from pipebench import api
from pipebench.bench.problems.workload import Workload
from pipebench.bench.store.stored_rows import workload_of
from pipebench.bench.suites import ChosenSuite, Suite, suite_schema
from pipebench.bench.suites.grid import grid_points
from pipebench.bench.suites.selection import Selection, SelectionKeywords, select
from pipebench.bench.suites.table import AXES
from pipebench.cli.workload_options import selection, workload_options
from pipebench.domain.artefact import Cell
from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.domain.workload import (
    SOURCES,
    Field,
    WorkloadKeywords,
    WorkloadSpec,
    keyword_fields,
    parts_of,
    problem_of,
    workload_fields,
)
from pipebench.formats.typed_text import parse_toml
from pipebench.hooks.manager import Host
from pipebench.testing.cases import layers
from tests.nightly import examples
from tests.report.rows import row

FIELDS = workload_fields()
COMMANDS = ("planning.compare", "planning.plan", "track.check", "track.record")
PARTS: dict[str, type[msgspec.Struct]] = {"pins": Pins, "regime": Regime, "problem": Problem}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_an_option_for_each_field(name: str) -> None:
    command = import_module(f"pipebench.cli.commands.{name}").command
    options = {option.name: option for option in command.params}
    for field in keyword_fields().values():
        option = options[field.name]
        assert f"--{field.name.replace('_', '-')}" in option.opts
        assert option.help == field.help
        if field.choices:
            assert tuple(option.type.choices) == field.choices
        else:
            assert option.type.name == {int: "integer", float: "float", str: "text"}[field.kind]


def test_the_options_are_the_fields_and_no_others() -> None:
    @click.command()
    @workload_options
    def command(**_: Any) -> None: ...

    sources = set(SelectionKeywords.__annotations__) - set(WorkloadKeywords.__annotations__)
    assert {option.name for option in command.params} == {*keyword_fields(), *sources}


def test_the_keys_of_a_suite_are_the_fields_with_their_texts() -> None:
    table = suite_schema()["$defs"]["SuiteWorkload"]
    assert set(table["properties"]) == {*FIELDS, "name"}
    assert {name: table["properties"][name]["description"] for name in FIELDS} == {
        name: f"{field.text}." for name, field in FIELDS.items()
    }
    assert table["required"] == [name for name, field in FIELDS.items() if field.default is msgspec.NODEFAULT]
    lists = {
        name
        for name, each in table["properties"].items()
        if any(kind.get("type") == "array" for kind in each.get("anyOf", []))
    }
    assert lists == set(AXES) == {name for name, field in FIELDS.items() if field.axis}


def test_the_keywords_of_the_api_are_the_fields() -> None:
    declared = get_type_hints(WorkloadSpec)
    keywords = get_type_hints(WorkloadKeywords)
    assert list(keywords) == list(keyword_fields())
    for name, kind in keywords.items():
        assert set(_alternatives(kind)) == {*_alternatives(declared[name]), NoneType}, name
    for verb in (api.compare, api.plan):
        signature = inspect.signature(verb)
        assert signature.parameters["workload"].annotation == Unpack[SelectionKeywords]
        assert not signature.parameters.keys() & keywords.keys()
    assert set(keywords) < set(SelectionKeywords.__annotations__)


def test_a_cell_has_the_fields_and_its_own() -> None:
    fields = {field.name: field for field in msgspec.structs.fields(Cell)}
    assert [name for name in fields if name in FIELDS] == list(FIELDS)
    for info in msgspec.structs.fields(WorkloadSpec):
        assert (fields[info.name].type, fields[info.name].default) == (info.type, info.default)
    assert not FIELDS.keys() & set(Cell.__annotations__)


@pytest.mark.parametrize("field", [each for each in FIELDS.values() if each.lands], ids=lambda each: each.name)
def test_a_field_lands_where_the_problem_has_one_of_its_type(field: Field) -> None:
    part, name = field.lands.split(".")
    (info,) = (each for each in msgspec.structs.fields(PARTS[part]) if each.name == name)
    if info.default is UNSET:
        # What older documents do not have: said where it is not the usual.
        usual = {} if field.default is None else {name: field.default}
        assert getattr(part_with(part, **usual), name) is UNSET
        assert getattr(part_with(part, **{name: 2}), name) == 2
        return
    assert info.default == field.default
    assert get_type_hints(PARTS[part])[name] == get_type_hints(WorkloadSpec)[field.name]


def part_with(part: str, **said: Any) -> Any:
    """A part of a problem that says this."""
    needed = {"regime": {"mode": "sync", "optimizer_sharding": "zero1"}}.get(part, {})
    return PARTS[part](**(needed | said))


def test_everything_that_can_be_pinned_or_said_of_the_regime_is_a_field() -> None:
    """The mode is the planner's or --regime, the precision the profile's; the step follows from --framework."""
    landed = {each.lands for each in FIELDS.values()}
    wanted = {f"pins.{name}" for name in Pins.__struct_fields__}
    wanted |= {f"regime.{name}" for name in Regime.__struct_fields__ if name not in ("mode", "precision", "step")}
    assert wanted <= landed


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if NoneType in get_args(kind) else (kind,)


def _values(field: Field) -> st.SearchStrategy[Any]:
    """Values that the declaration allows."""
    if field.choices:
        return st.sampled_from(field.choices)
    if field.kind is str:
        known = {"bytes": ["12GB", "1.5 TiB", "7B"], "bytes/s": ["12GB/s", "1 KiB/s"]}
        return st.sampled_from(known.get(field.unit, ["mmt", "mmt[branches=2,layers=1]", "b", "x[c='ü\\']"]))
    limits = _limits(field.type)
    if field.kind is int:
        return st.integers(limits["ge"], min(limits["le"], 2**16))
    least, most = limits["ge"], limits.get("lt", limits.get("le"))
    return st.floats(least, most, exclude_max="lt" in limits)


def _limits(kind: Any) -> dict[str, Any]:
    if get_origin(kind) is Annotated:
        metas = [each for each in get_args(kind)[1:] if isinstance(each, msgspec.Meta)]
        return {
            key: limit for each in metas for key in ("ge", "le", "lt") if (limit := getattr(each, key)) is not None
        }
    return next((found for each in get_args(kind) if (found := _limits(each))), {})


@cache
def _source(name: str) -> st.SearchStrategy[dict[str, str]]:
    return _values(FIELDS[name]).map(lambda text: {name: text})


@st.composite
def overrides(draw: st.DrawFn) -> dict[str, Any]:
    """Some fields with values, the devices among them, no source; one of the mini-batches at most."""
    names = draw(st.sets(st.sampled_from(list(keyword_fields())))) | {"devices"}
    if {"mini_batch", "mini_batch_per_device"} <= names:
        names.remove(draw(st.sampled_from(["mini_batch", "mini_batch_per_device"])))
    return {name: draw(_values(FIELDS[name])) for name in FIELDS if name in names}


@st.composite
def specs(draw: st.DrawFn) -> WorkloadSpec:
    """Workloads with any fields."""
    source = draw(st.one_of(*map(_source, SOURCES)))
    return WorkloadSpec(**draw(overrides()), **source)


def toml(value: object) -> str:
    """As TOML writes it: strings, numbers and lists as JSON does."""
    return msgspec.json.encode(value).decode()


def entry_text(spec: WorkloadSpec, **changes: object) -> str:
    """The workload as a table of a suite."""
    keys = {name: each for name, each in msgspec.structs.asdict(spec).items() if each is not None} | changes
    return "[[workloads]]\n" + "".join(f"{key} = {toml(each)}\n" for key, each in keys.items())


def from_suite(text: str) -> list[WorkloadSpec]:
    suite = parse_toml(f'name = "a"\nsummary = "b"\n{text}'.encode(), Suite, "suite")
    return [point.spec for point in grid_points(ChosenSuite(suite, "suite"), {})]


@settings(max_examples=examples(200), deadline=None)
@given(specs())
def test_a_workload_goes_into_a_suite_and_back(spec: WorkloadSpec) -> None:
    assert from_suite(entry_text(spec)) == [spec]


@settings(max_examples=examples(200), deadline=None)
@given(specs(), st.data())
def test_a_list_is_a_workload_for_each_value(spec: WorkloadSpec, data: st.DataObject) -> None:
    axes = [name for name in AXES if getattr(spec, name) is not None]
    axis = data.draw(st.sampled_from(axes))
    several = data.draw(st.lists(_values(FIELDS[axis]), min_size=1, max_size=4, unique=True))
    found = from_suite(entry_text(spec, **{axis: several}))
    assert found == [msgspec.structs.replace(spec, **{axis: value}) for value in several]


@settings(max_examples=examples(200), deadline=None)
@given(specs())
def test_a_workload_goes_into_a_cell_and_back(spec: WorkloadSpec) -> None:
    cell = Cell(**msgspec.structs.asdict(spec), at={"network": "a"}, planner="pipedream", chain=True)
    assert cell.plain() == spec
    assert msgspec.json.decode(msgspec.json.encode(cell), type=Cell).plain() == spec
    assert cell.plain(devices=3) == msgspec.structs.replace(spec, devices=3)


@settings(max_examples=examples(200), deadline=None)
@given(specs())
def test_a_workload_goes_into_json_and_back(spec: WorkloadSpec) -> None:
    assert msgspec.json.decode(msgspec.json.encode(spec), type=WorkloadSpec) == spec


@settings(max_examples=examples(100), deadline=None)
@given(overrides())
def test_a_workload_goes_through_the_command_line_and_the_api(values: dict[str, Any]) -> None:
    chosen: dict[str, Any] = {}

    @click.command()
    @workload_options
    def command(**choice: Any) -> None:
        chosen.update(choice)

    words = [word for name, each in values.items() for word in (f"--{name.replace('_', '-')}", str(each))]
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert done.exception is None, done.exception
    assert selection(chosen).overrides == values == Selection(**values).overrides
    nothing: dict[str, Any] = dict.fromkeys(keyword_fields())
    assert Selection(**(nothing | values)).overrides == values


@settings(max_examples=examples(100), deadline=None)
@given(specs(), st.sampled_from(["sync", "async"]))
def test_a_workload_is_stored_and_found_again(spec: WorkloadSpec, mode: Any) -> None:
    base = layers("sync", Pins())
    spec = msgspec.structs.replace(spec, micro_batch=None, micro_batch_size=None, ep=1, cp=1, sharding_ranks=None)
    problem = Workload("m", problem_of(spec, base.profile, base.cluster, 8)).problem(mode)
    kept = msgspec.json.decode(msgspec.json.encode(problem), type=Problem)
    again = workload_of(row("uniform", model="m"), kept)
    assert again.problem("sync") == problem_of(spec, base.profile, base.cluster, 8)
    assert again.problem(mode).problem_id == problem.problem_id
    for part, landed in parts_of(msgspec.structs.asdict(spec)).items():
        holder = {"pins": kept.pins, "regime": kept.regime, "problem": kept}[part]
        assert {name: getattr(holder, name) for name in landed} == landed | (
            dict.fromkeys(("expert_parallel", "context_parallel", "sharding_ranks"), UNSET)
            if part == "regime"
            else {}
        )


def test_a_cell_pins_what_a_suite_can_pin() -> None:
    """Virtual stages, recomputation, precisions and sharding reach the problem of a cell."""
    from pipebench.bench.reproduction.reproduce import work_of

    cell = Cell(
        at={}, planner="uniform", model="mmt[branches=2,layers=2]", cluster="dgx-h100", devices=2, mini_batch=4,
        vpp=2, recompute="stage", precision="bf16", gradient_precision="fp32", optimizer="adam",
        optimizer_sharding="zero1",
    )  # fmt: skip
    (trial,) = work_of(Host(), [cell]).agenda.trials
    problem = trial.workload.problem("sync")
    assert problem.pins == Pins(virtual_stages=2, recompute="stage")
    assert problem.regime == Regime(
        mode="sync", precision="bf16", gradient_precision="fp32", optimizer="adam", optimizer_sharding="zero1"
    )


def test_a_mini_batch_that_is_said_replaces_the_suites_whichever_way_it_is_written() -> None:
    text = entry_text(WorkloadSpec(profile="mmt", devices=4, mini_batch=64))
    suite = parse_toml(f'name = "a"\nsummary = "b"\n{text}'.encode(), Suite, "suite")
    (point,) = grid_points(ChosenSuite(suite, "suite"), {"mini_batch_per_device": 2})
    assert (point.spec.mini_batch, point.spec.samples) == (None, 8)


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"device": 4}, "unknown arguments: device"),
        ({"mini_batch": 8, "mini_batch_per_device": 2}, "not both"),
        ({"mini_batch_per_device": 0}, "mini_batch_per_device is 0"),
        ({"recompute": "all"}, "unknown recompute 'all'"),
        ({"micro_batch": 2.5}, "micro_batch is 2.5: Expected `int`"),
    ],
)
def test_a_wrong_keyword_is_told(keywords: dict[str, Any], told: str) -> None:
    with pytest.raises(PipebenchError) as caught:
        select(Host(), Selection(models="mmt", **keywords))
    assert told in str(caught.value)


def test_one_text_is_a_list_of_one() -> None:
    assert Selection(models="mmt", suites=["quick"]).models == ("mmt",)


def test_a_workload_has_one_source() -> None:
    sources: list[dict[str, Any]] = [{}, {"model": "a", "profile": "b"}]
    for wrong in sources:
        with pytest.raises(PipebenchError, match="a model or a profile, one of them"):
            WorkloadSpec(devices=2, **wrong)
