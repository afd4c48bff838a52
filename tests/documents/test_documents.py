"""Documents: every value survives JSON both ways; a wrong file is an error that names the path inside it."""

import json
import re
from typing import Any

import click
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.cli.main import main
from pipebench.documents.document import KINDS, PlannedProblem, Rows, decode, encode, kind_of, schema
from pipebench.documents.naming import NAMINGS
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import FIRST_FIELDS, Problem
from pipebench.domain.profile import Provenance
from pipebench.domain.schedule import FiniteSchedule, Lane, PeriodicSchedule
from pipebench.domain.value import digest
from pipebench.domain.verdict import Verdict
from tests.builders import chain_problem, cluster, stages_plan

PROBLEM = chain_problem([1, 2], [3, 4], cluster(2), activations=[5, 6, 0], weights=[7, 8])
PLAN = stages_plan([[0], [1]])
FINITE = FiniteSchedule(lanes=(Lane(devices=(0,), stage=(0, 0), micro_batch=(0, 0), kinds="FB"),))
PERIODIC = PeriodicSchedule(period_ns=9, stage=(0, 0), kinds="FB", start_ns=(0, 4), shift=(0, 1))


def broken(change: Any) -> bytes:
    document = json.loads(encode("problem", PROBLEM))
    change(document)
    return json.dumps(document).encode()


@pytest.mark.parametrize("kind", KINDS)
def test_another_kind_is_named_in_words_with_commands_that_there_are(kind: str) -> None:
    wanted = "plan" if kind == "rows" else "rows"
    data = json.dumps({"pipebench": kind, "version": 1, "content": {}}).encode()
    with pytest.raises(PipebenchError) as error:
        decode(data, wanted, "p.json")
    words, commands = NAMINGS[kind]
    assert error.value.message == f"p.json: holds {words}, not {NAMINGS[wanted].words}"
    assert "a rows" not in error.value.message
    for typed in commands:
        assert typed in (error.value.hint or "")
        name, *options = typed.split()
        command = main.get_command(click.Context(main), name)
        assert command is not None
        offered = {spelling for each in command.params for spelling in each.opts}
        assert {each for each in options if each.startswith("--")} <= offered


@pytest.mark.parametrize("schedule", [None, FINITE, PERIODIC])
def test_a_plan_with_its_problem_survives_json(schedule: Any) -> None:
    planned = PlannedProblem(problem=PROBLEM, plan=PLAN, schedule=schedule)
    data = encode("plan", planned)
    assert decode(data, "plan", "p.json") == planned
    assert digest(decode(data, "plan", "p.json")) == digest(planned)
    assert kind_of(data, "p.json") == "plan"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda d: d["content"]["profile"]["graph"]["operators"][1].update(name=3),
            "content.profile.graph.operators[1]",
        ),
        (lambda d: d["content"].update(mini_batch=0), "mini_batch is 0"),
        (lambda d: d["content"].update(extra=1), "unknown field `extra`"),
        (lambda d: d["content"]["cluster"].update(devices=[]), "zero devices"),
        (
            lambda d: d["content"]["profile"]["costs"][0]["operators"][0].update(forward_s=[-1.0]),
            "$.content.profile.costs[0].operators[0].forward_s[0]: operator 'op0': forward_s[0] is -1.0",
        ),
        (lambda d: d["content"]["profile"]["graph"].update(operators=[]), "has no operators"),
        (lambda d: d.update(version=2), "version 2, this pipebench reads version 1"),
        (lambda d: d.update(pipebench="plam"), "did you mean 'plan'"),
        (lambda d: d.pop("version"), "not a pipebench document"),
    ],
)
def test_a_wrong_document_names_what_is_wrong_and_where(change: Any, expected: str) -> None:
    with pytest.raises(PipebenchError) as caught:
        decode(broken(change), "problem", "file.json")
    assert "file.json" in str(caught.value)
    assert expected in str(caught.value)


def test_a_cycle_is_spelled_out() -> None:
    def close(document: Any) -> None:
        graph = document["content"]["profile"]["graph"]
        graph["operators"][0]["inputs"] = ["back"]
        graph["tensors"].append(
            {"name": "back", "producer": "op1", "forward_bytes_per_sample": 1, "gradient_bytes_per_sample": 1}
        )

    with pytest.raises(PipebenchError, match="cycle: op0 -> op1 -> op0"):
        decode(broken(close), "problem", "file.json")


@given(st.integers(min_value=0, max_value=10_000))
def test_a_truncated_document_is_never_a_traceback(length: int) -> None:
    data = encode("problem", PROBLEM)
    cut = data[: min(length, len(data) - 1)]
    with pytest.raises(PipebenchError):
        decode(cut, "problem", "cut.json")


def test_nan_is_not_a_number_of_a_document() -> None:
    data = encode("problem", PROBLEM).replace(b"1e-9", b"NaN", 1)
    assert b"NaN" in data
    with pytest.raises(PipebenchError, match="not valid JSON"):
        decode(data, "problem", "nan.json")


def test_hashes_follow_content() -> None:
    same = chain_problem([1, 2], [3, 4], cluster(2), activations=[5, 6, 0], weights=[7, 8])
    other = chain_problem([1, 2], [3, 5], cluster(2), activations=[5, 6, 0], weights=[7, 8])
    sync = chain_problem([1, 2], [3, 4], cluster(2), activations=[5, 6, 0], weights=[7, 8], mode="sync")
    assert same.problem_id == PROBLEM.problem_id
    assert hash(same) == hash(PROBLEM)
    assert other.problem_id != PROBLEM.problem_id
    assert sync.problem_id != PROBLEM.problem_id
    assert sync.workload_id == PROBLEM.workload_id


@pytest.mark.parametrize(
    ("devices", "shared", "placement"),
    [
        ((0, 1), False, "apart"),
        ((0, 1, 0), True, "listed"),
        ((0, 1, 0, 1), True, "in-turn"),
        ((0, 1, 1, 0), True, "v"),
    ],
)
def test_a_plan_with_the_former_field_of_shared_devices_is_read(
    devices: tuple[int, ...], shared: bool, placement: str
) -> None:
    plan = Plan(
        stages=tuple(Stage(operators=(f"op{k}",), devices=(d,), micro_batch=1) for k, d in enumerate(devices))
    )
    now = msgspec.structs.replace(plan, placement=placement)
    for kind, value in (("bare-plan", plan), ("plan", PlannedProblem(problem=PROBLEM, plan=plan))):
        document = json.loads(encode(kind, value))
        former = document["content"] if kind == "bare-plan" else document["content"]["plan"]
        del former["placement"], former["pipelines"]
        former["shared_devices"] = shared
        read = decode(json.dumps(document).encode(), kind, "p.json")
        assert (read if kind == "bare-plan" else read.plan) == now
    broken_plan = b'{"pipebench":"bare-plan","version":1,"content":{"stages":3,"shared_devices":true}}'
    with pytest.raises(PipebenchError, match=r"content\.stages"):
        decode(broken_plan, "bare-plan", "p.json")


def test_plans_and_schedules_keep_the_identity_that_older_stores_gave_them() -> None:
    """Digests made before plans had placements and pipelines, and lanes had pairs of tasks."""
    assert digest(PLAN) == "d175329e70adfe51403b424e811346fbf0fdd3976b5a46506f20654dcadecadf"
    shared = tuple(msgspec.structs.replace(stage, devices=(0,)) for stage in PLAN.stages)
    for placement in ("listed", "in-turn"):
        plan = msgspec.structs.replace(PLAN, stages=shared, placement=placement)
        assert digest(plan) == "825a2593385cc00b1fa90e1fd5b58d9d21b56a90687b5ed903fb3528a90ace56"
    assert digest(FINITE) == "57f2f11cb49a06e2a4013ebe5c4cf54331187eda6d674f62e7491f80730eb4eb"


def test_what_is_new_makes_another_identity() -> None:
    two = msgspec.structs.replace(PLAN, pipelines=2, placement="listed")
    one = msgspec.structs.replace(PLAN, placement="listed")
    assert digest(two) != digest(one)
    lane = Lane(devices=(0,), stage=(0, 0), micro_batch=(1, 0), kinds="FB", together=(0,))
    apart = msgspec.structs.replace(lane, together=())
    assert digest(FiniteSchedule(lanes=(lane,))) != digest(FiniteSchedule(lanes=(apart,)))


def test_an_overlap_of_nothing_leaves_the_identity_of_a_problem() -> None:
    """Problems from before the field have the identity that they had."""
    figures = msgspec.structs.replace(PROBLEM.profile, provenance=Provenance())
    pins = {name: getattr(PROBLEM.pins, name) for name in PROBLEM.pins.__struct_fields__ if name in FIRST_FIELDS}
    assert PROBLEM.workload_id == digest((figures, PROBLEM.cluster, PROBLEM.mini_batch, pins))
    half = msgspec.structs.replace(PROBLEM, overlap=0.5)
    assert (
        len({half.workload_id, PROBLEM.workload_id, msgspec.structs.replace(PROBLEM, overlap=1.0).workload_id})
        == 3
    )
    assert half.problem_id != PROBLEM.problem_id


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_has_a_schema(kind: str) -> None:
    made = schema(kind)
    assert made["properties"]["pipebench"] == {"const": kind}
    text = json.dumps(made)
    named = set(made["$defs"])
    assert set(re.findall(r'"#/\$defs/(\w+)"', text)) <= named
    assert "additionalProperties" in text


def test_values_are_frozen() -> None:
    problem: Any = PROBLEM
    with pytest.raises(AttributeError):
        problem.mini_batch = 2
    assert isinstance(PROBLEM, Problem)
    assert isinstance(PROBLEM, msgspec.Struct)


def test_values_with_numbered_devices_survive_and_are_hashable() -> None:
    verdict = Verdict(status="valid", fit="fits", peak_bytes={0: 5, 10: 7})
    assert decode(encode("verdict", verdict), "verdict", "v.json") == verdict
    assert hash(verdict) == hash(Verdict(status="valid", fit="fits", peak_bytes={10: 7, 0: 5}))


def test_what_compare_prints_is_read() -> None:
    """Rows without an envelope, with every field that they have."""
    printed = msgspec.json.encode(Rows(rows=()))
    assert set(msgspec.json.decode(printed)) == {"rows", "cached", "best"}
    assert decode(printed, "rows", "rows.json") == Rows(rows=())
