"""Documents made to mislead or to break the checker: each is refused in words that name the place."""

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.bench.certification import verify
from pipebench.bounds.proof import time_proof
from pipebench.certificates.bound_check import OWN, flaw_of_bound
from pipebench.certificates.check import check, check_content, main
from pipebench.certificates.document import MOST_BYTES, MOST_ELEMENTS, Part, Refused, seal_of, written
from pipebench.certificates.write import certificate
from pipebench.domain.problem import Pins, Problem, RegimeMode
from tests.bounds.drawn_problems import with_alternatives
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.certificates.made import of_case, of_kind, valid_cases
from tests.nightly import mostly_at_night
from tests.plugins.running import services

PLAIN = "chain, 1F1B, half"
REPLICAS = "replicas across levels of links"
ASTRIDE = "copies astride nodes"


def content_of(name: str) -> Any:
    return json.loads(of_case(name).data)["content"]


def task(content: Any, *key: Any) -> list[Any]:
    """The row of a task."""
    return next(row for lane in content["schedule"]["lanes"] for row in lane["tasks"] if row[:3] == list(key))


def negative_time(content: Any) -> None:
    task(content, "F", 0, 0)[3:] = [-5, 0]


def doubled_task(content: Any) -> None:
    lane = content["schedule"]["lanes"][0]["tasks"]
    lane.append([*lane[-1][:3], lane[-1][4], 2 * lane[-1][4] - lane[-1][3]])


def missing_micro_batch(content: Any) -> None:
    for lane in content["schedule"]["lanes"]:
        lane["tasks"] = [row for row in lane["tasks"] if row[2] != 7 or row[0] == "R"]
    content["schedule"]["messages"] = [row for row in content["schedule"]["messages"] if row[4] != 7]


def unknown_micro_batch(content: Any) -> None:
    task(content, "F", 0, 7)[2] = 2**40


def too_early(content: Any) -> None:
    row = task(content, "F", 2, 0)
    row[3:] = [row[3] - 1, row[4] - 1]


def message_before_it_is_made(content: Any) -> None:
    row = content["schedule"]["messages"][0]
    row[5:] = [row[5] - 1, row[6] - 1]


def missing_message(content: Any) -> None:
    del content["schedule"]["messages"][3]


def two_at_once(content: Any) -> None:
    """The second forward of the first stage starts with the first one."""
    first, second = task(content, "F", 0, 0), task(content, "F", 0, 1)
    second[3:] = first[3:]


def shorter_time(content: Any) -> None:
    content["claims"]["time_ns"] -= 1


def cheaper_operator(content: Any) -> None:
    content["plan"]["stages"][0]["compute_ns"][0][0] -= 1


def understated_memory(content: Any) -> None:
    content["claims"]["peak_bytes"][0][1] -= 1


def small_devices(content: Any) -> None:
    content["problem"]["devices"][0][0] = 1


def understated_table(content: Any) -> None:
    content["plan"]["stages"][0]["memory_bytes"][0] -= 1


def forgotten_operator(content: Any) -> None:
    stage = next(each for each in content["plan"]["stages"] if len(each["operators"]) > 1)
    del stage["operators"][0]
    del stage["compute_ns"][0]


def operator_without_choice(content: Any) -> None:
    content["bound"]["choices"] = [row for row in content["bound"]["choices"] if row[0] != 1]


def higher_bound(content: Any) -> None:
    content["claims"]["bound_ns"] += 1


def half_the_samples(content: Any) -> None:
    """A choice that runs half of the mini-batch would be cheap, and its absence dear."""
    for row in content["bound"]["choices"]:
        row[4] = max(row[4] // 2, 1) if row[4] > 1 else row[4]
        row[5] = max(row[5] // 2, 1)


def circle_of_operators(content: Any) -> None:
    content["problem"]["tensors"].append(["back", len(content["problem"]["operators"]) - 1, [0]])


def many_copies(content: Any) -> None:
    content["plan"]["copies"] = 2**60


def huge_mini_batch(content: Any) -> None:
    content["problem"]["mini_batch"] = 2**61


def waits_for_nothing(content: Any) -> None:
    """The last backward one ns later, and the claim with it."""
    rows = [row for lane in content["schedule"]["lanes"] for row in lane["tasks"]]
    last = max(rows, key=lambda row: row[4])
    last[3:] = [last[3] + 1, last[4] + 1]
    content["claims"]["time_ns"] += 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (negative_time, r"lanes\[0\]\.tasks\[0\]\[3\]: is -5"),
        (doubled_task, r"lanes\[0\]\.tasks.*stands twice"),
        (missing_micro_batch, "micro-batch 7 has no task: it needs F and B"),
        (unknown_micro_batch, "the plan has no F of stage 0, micro-batch 1099511627776"),
        (too_early, "what it needs is there at"),
        (message_before_it_is_made, "it is made at"),
        (missing_message, r"messages: the . message of tensor .* is missing"),
        (two_at_once, r"F of stage 0, micro-batch 1 starts at 0 ns on devices \(0,\), where F of stage 0"),
        (shorter_time, r"claims.time_ns: is .*, the tables and the schedule say"),
        (cheaper_operator, r"tasks\[\d+\]: F of stage 0, micro-batch 0 lasts"),
        (understated_memory, r"claims.peak_bytes: are not those of the schedule"),
        (understated_table, r"claims.peak_bytes"),
        (small_devices, r"device 0 holds .* bytes, it has 1"),
        (forgotten_operator, r"operator 'op.' is in no stage"),
        (higher_bound, r"claims.bound_ns"),
        (circle_of_operators, r"problem.tensors: some operators wait for each other"),
        (many_copies, r"plan.copies: is 1152921504606846976, it must be from 1 to 4"),
        (huge_mini_batch, r"choices|lanes|stages"),
        (waits_for_nothing, "waits for nothing"),
    ],
)
def test_a_forged_certificate_is_refused_at_its_place(change: Callable[[Any], None], words: str) -> None:
    content = content_of(PLAIN)
    change(content)
    with pytest.raises(Refused, match=words):
        check(written(content))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (operator_without_choice, r"bound.choices: operator 'op1' has no choice"),
        (half_the_samples, r"choices\[0\]: runs \d of \d samples"),
    ],
)
def test_a_forged_bound_of_choices_is_refused_at_its_place(change: Callable[[Any], None], words: str) -> None:
    content = content_of("chain, a V")
    change(content)
    with pytest.raises(Refused, match=words):
        check(written(content))


def serial(mode: RegimeMode, **changes: Any) -> tuple[Problem, Any]:
    """Two equal operators, two devices, and the certificate of the plan that uses one of them: 80 ns of 40."""
    problem = replace(chain_problem([10, 10], [10, 10], cluster(2), mode=mode, mini_batch=2), **changes)
    plan = stages_plan([[0, 1]])
    schedule = services().schedule("1f1b" if mode == "sync" else "1f1b*", problem, plan)
    return problem, json.loads(certificate(problem, plan, schedule, {}).data)["content"]


def test_a_bound_is_of_all_devices_that_a_plan_may_use() -> None:
    """With one of two devices the sum of all work would make any serial plan the best one."""
    _, content = serial("sync")
    assert (content["bound"]["kind"], content["claims"]["bound_ns"]) == ("work", 40)
    content["bound"]["devices"], content["claims"]["bound_ns"] = 1, 80
    with pytest.raises(Refused, match=r"bound\.devices: are not the 2 of a plan"):
        check(written(content))
    _, pinned = serial("sync", pins=Pins(pipeline=1, data_parallel=1, tensor_parallel=1))
    assert (pinned["bound"]["kind"], pinned["bound"]["devices"], pinned["claims"]["bound_ns"]) == ("work", 1, 80)


@pytest.mark.parametrize(
    ("changes", "claimed_ns", "words"),
    [
        ({}, 40, ""),
        ({"devices": 1}, 80, r"proof\.devices: are not the 2 of a plan"),
        ({"waits": 1}, 45, r"proof\.waits: are those of devices that never wait"),
    ],
)
def test_without_a_flush_nobody_waits(changes: dict[str, int], claimed_ns: int, words: str) -> None:
    """Of what all operators share: with a flush the second device waits for 10 ns."""
    problem, content = serial("async", pins=Pins(data_parallel=1))
    proof = time_proof(problem)
    assert proof is not None
    made = {**json.loads(json.dumps(proof.document())), **changes, "claimed_ns": claimed_ns}
    content["bound"] = {"kind": "reduce", "over": "plans of whole operators", "proof": made}
    content["claims"]["bound_ns"] = claimed_ns
    assert flaw_of_bound(made) == ""
    if not words:
        assert check(written(content)).bound_ns == claimed_ns
        return
    with pytest.raises(Refused, match=words):
        check(written(content))


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (("every_stage_ns",), "is 40 ns, a stage of the plan runs 0 ns for its update"),
        (("choices", 0, 8), "operator 'op0' takes 80 ns of devices, in the plan it takes 40 ns"),
    ],
)
def test_tables_of_a_bound_do_not_contradict_the_plan_beside_them(place: Sequence[Any], words: str) -> None:
    _, content = serial("sync")
    put("bound", *place, to=40)(content)
    content["claims"]["bound_ns"] = 80 if len(place) == 1 else 60
    with pytest.raises(Refused, match=words):
        check(written(content))


def test_the_fastest_lane_may_take_more_time_of_devices() -> None:
    """On two devices an operator takes 60 % of its time, so 120 % of theirs: `path` keeps that way alone."""
    problem = with_alternatives(chain_problem([100, 1], [100, 1], cluster(4), mode="sync", mini_batch=1), 60, 2, 1)
    plan = stages_plan([[0], [1]])
    made = certificate(problem, plan, services().schedule("1f1b", problem, plan), {})
    assert json.loads(made.data)["content"]["bound"]["kind"] == "path"
    assert check(made.data).bound_ns == made.proven.bound_ns


def test_what_every_stage_runs_without_a_flush_is_not_above_its_update() -> None:
    problem, content = serial("async")
    proof = time_proof(problem)
    assert proof is not None
    made = {**json.loads(json.dumps(proof.document())), "every_ns": 2**61, "claimed_ns": 80}
    content["bound"] = {"kind": "reduce", "over": "plans of whole operators", "proof": made}
    content["claims"]["bound_ns"] = 80
    with pytest.raises(Refused, match="is 2305843009213693952 ns, a stage of the plan runs 0 ns"):
        check(written(content))


def test_live_bytes_are_of_what_is_before_one_operator() -> None:
    """Three operators beside each other need not be live at once: two devices run them in 40 ns, one in 60."""
    problem = dag_problem([10] * 3, [10] * 3, [], cluster(2, memory=60), saved=[50] * 3, mini_batch=1, mode="sync")
    found = time_proof(problem)
    assert found is not None
    proof = json.loads(json.dumps(found.document()))
    assert flaw_of_bound(proof) == ""
    of_all = {"tables": proof["tables"][:1], "operators": [0, 0, 0], "byte": 10**9, "byte_parts": 1}
    all_at_once = {**proof, **of_all, "instant": proof["parts"], "claimed_ns": 60}
    assert "no one operator without successors is behind" in flaw_of_bound(all_at_once)


@pytest.mark.parametrize(("operator_ns", "flaw"), [(0, "0 ns suffice"), (1, "")])
def test_a_nanosecond_is_claimed_where_something_takes_time(operator_ns: int, flaw: str) -> None:
    problem = chain_problem([operator_ns, 0], [0, 0], cluster(2, memory=100), mode="sync", saved=[10, 10])
    found = time_proof(problem)
    assert found is not None
    proof = {**json.loads(json.dumps(found.document())), "claimed_ns": 1}
    assert flaw in flaw_of_bound(proof)
    assert bool(flaw) == bool(flaw_of_bound(proof))


def test_a_pair_hides_what_the_overlap_says() -> None:
    """With none nothing is hidden: not one ns of each pair, either."""
    problem, plan = chain_problem([1, 1], [1, 1], cluster(2), mode="sync", mini_batch=2), stages_plan([[0, 1]])
    content = json.loads(certificate(problem, plan, services().schedule("1f1b", problem, plan), {}).data)[
        "content"
    ]
    tasks = [["F", 0, 0, 0, 2], ["F", 0, 1, 2, 5], ["B", 0, 0, 2, 5], ["B", 0, 1, 5, 7]]
    content["schedule"]["lanes"] = [{"devices": [0], "tasks": tasks, "together": [1]}]
    content["plan"]["hidden_ns"], content["claims"]["time_ns"] = [[0, 0, "B", 1]], 7
    with pytest.raises(Refused, match="hides 1 ns: not the overlap's share of 2 ns"):
        check(written(content))


def test_replicas_in_turn_meet_again_soon_or_are_not_looked_at() -> None:
    content = json.loads(of_kind("work").data)["content"]
    one, other = content["plan"]["stages"]
    content["problem"]["devices"] = [content["problem"]["devices"][0]] * 65
    content["problem"]["levels"] = [[65, 0]]
    for stage, first, count in ((one, 0, 32), (other, 32, 33)):
        stage |= {"devices": list(range(first, first + count)), "data_parallel": count, "replicas": "round_robin"}
    with pytest.raises(Refused, match="meets stage 0 on the same devices after over 1024 turns"):
        check(written(content))


@pytest.mark.parametrize("step", mostly_at_night([1, 4], [4]))
def test_a_bound_from_what_is_shared_is_not_of_plans_that_split_operators(step: int) -> None:
    """All cases, or every fourth."""
    contents = [content_of(name) for name in list(valid_cases())[::step]]
    kinds = [each for each in contents if "proof" in each["bound"]]
    assert kinds
    for content in kinds:
        content["bound"]["over"] = "all plans"
        with pytest.raises(Refused, match=r"bound\.over: is 'all plans'"):
            check(written(content))


def test_a_forgotten_replica_is_refused() -> None:
    content = content_of(REPLICAS)
    stage = next(each for each in content["plan"]["stages"] if each["data_parallel"] > 1)
    fewer = {**stage, "devices": stage["devices"][:-1]}
    content["plan"]["stages"][content["plan"]["stages"].index(stage)] = fewer
    with pytest.raises(Refused, match=r"are not . x 1 different devices"):
        check(written(content))
    fewer["data_parallel"] -= 1
    with pytest.raises(Refused):
        check(written(content))


@pytest.mark.parametrize("name", ["round", "round_ns"])
def test_a_round_that_is_none_is_refused(name: str) -> None:
    content = content_of("pattern")
    for value in (0, 1, 2, 10**9):
        if content["schedule"][name] != value:
            with pytest.raises(Refused):
                check_content(Part({**content, "schedule": {**content["schedule"], name: value}}, "content"))


Change = Callable[[bytes], bytes]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it is no JSON"),
        (b"\xff\xfe", "it is not UTF-8 at byte 0"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"pipebench":' * 50_000, "nested too deep"),
        (b"[]", "it is no certificate"),
        (b'{"pipebench":"rows","version":1}', "it is no certificate"),
        (b'{"pipebench":"certificate","version":3,"seal":"","content":{}}', "version: is 3, this checker reads 2"),
        (b'{"pipebench":"certificate","version":true}', "version: is no whole number"),
        (b'{"pipebench":"certificate","version":NaN}', "NaN is no whole number"),
        (b'{"pipebench":"certificate","version":-Infinity}', "-Infinity is no whole number"),
        (b'{"pipebench":"certificate","version":1e400}', "1e400 is no whole number"),
        (b'{"pipebench":"certificate","version":1.0}', "'version', line 1, column 38: 1.0 is no whole number"),
        (b'{"pipebench":"certificate","a":"1.5: \\"1.5",\n "c":[1.5]}', "'c', line 2, column 7: 1.5 is no whole"),
        (b'{"pipebench":"plan","version":1,"content":[1.5]}', "it is no certificate"),
        (lambda sound: sound.replace(b'"time_ns":', b'"time_ns":0.', 1), "'time_ns', line "),
        (b'{"pipebench":"certificate","version":%s}' % (b"9" * 5000), "a number of 5000 digits"),
        (b'{"pipebench":"certificate","pipebench":"x"}', "the field 'pipebench' stands twice"),
        (b"[%s]" % (b"0," * MOST_ELEMENTS + b"0"), "values: no certificate has"),
        (lambda sound: sound[:-5], "it is no JSON"),
        (lambda sound: sound.replace(b'"seal":"', b'"seal":"0'), "seal: is not that of the content"),
        (lambda sound: sound.replace(b'"version":2', b'"version":2,"more":1', 1), "has the field 'more'"),
    ],
)  # fmt: skip
def test_what_is_no_certificate_is_refused(data: bytes | Change, words: str) -> None:
    """Bytes, or what becomes of a sound certificate."""
    given = data if isinstance(data, bytes) else data(of_case(PLAIN).data)
    with pytest.raises(Refused, match=re.escape(words)):
        check(given)


@pytest.mark.parametrize(("number", "read"), [(10**25, True), (10**31, False)])
def test_bytes_of_all_devices_times_ns_are_large_numbers(number: int, read: bool) -> None:
    """Of a language model of 13 billion weights on 32 devices 10^19."""
    contents = (content_of(name) for name in valid_cases())
    content = next(each for each in contents if "tables" in each["bound"].get("proof", {}))
    content["bound"]["proof"]["tables"][0][0][OWN] = number
    if read:
        assert check(written(content)).bound_ns == content["claims"]["bound_ns"]
        return
    with pytest.raises(Refused, match="a number of 32 digits"):
        check(written(content))


@pytest.mark.parametrize("value", [2**62 + 1, -1, True, 1.0, "1", None, [], {}])
@pytest.mark.parametrize("path", [("problem", "mini_batch"), ("claims", "time_ns"), ("plan", "copies")])
def test_numbers_are_whole_and_in_range(path: tuple[str, str], value: object) -> None:
    content = content_of(PLAIN)
    content[path[0]][path[1]] = value
    with pytest.raises(Refused, match=path[1]):
        check_content(Part(content, "content"))


def test_files_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large = tmp_path / "large.json"
    with large.open("wb") as made:
        made.truncate(2**30)  # sparse: a gigabyte of nothing
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    sound = tmp_path / "sound.json"
    sound.write_bytes(of_case(PLAIN).data)
    assert verify(str(large)).reason == f"it has over {MOST_BYTES // 2**20} MiB: no certificate has"
    assert verify(str(pipe)).reason == "it is no file"
    assert verify(str(tmp_path)).reason == "cannot be read: is a directory"
    assert verify(str(tmp_path / "none")).reason.startswith("cannot be read: no such file")
    assert verify(str(sound)).proven is not None
    assert main([str(sound)]) == 0
    assert main([str(sound), str(pipe)]) == 1
    assert main([]) == 1
    assert "refused: it is no file" in capsys.readouterr().out


def test_texts_cannot_move_a_terminal() -> None:
    content = content_of(PLAIN)
    content["about"]["planner"] = "\x1b[2J"
    with pytest.raises(Refused, match=r"about\.planner"):
        check_content(Part(content, "content"))
    content["about"]["planner"] = "x" * 5000
    with pytest.raises(Refused, match=r"about\.planner"):
        check_content(Part(content, "content"))


def test_the_seal_does_not_depend_on_the_order_of_fields() -> None:
    content = content_of(PLAIN)
    assert seal_of(dict(reversed(content.items()))) == seal_of(content)


def put(*path: Any, to: Any) -> Callable[[Any], None]:
    """A change of one value."""

    def change(content: Any) -> None:
        inside = content
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = to

    return change


def on_another_lane(content: Any) -> None:
    lanes = content["schedule"]["lanes"]
    lanes[1]["tasks"].append(lanes[0]["tasks"].pop())


def longer_message(content: Any) -> None:
    content["schedule"]["messages"][0][6] += 1


def shared_device(content: Any) -> None:
    """One device of two sets that are otherwise apart."""
    first, second, *_ = content["plan"]["stages"]
    second["devices"][0] = first["devices"][0]


def stage_waits_for_itself(content: Any) -> None:
    content["plan"]["order_edges"] = [[2, 0]]


PAIRS, PATTERN = "both ways, pairs", "pattern"


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        (PLAIN, put("problem", "operators", 1, to="op0"), "names an operator twice"),
        (PLAIN, put("problem", "overlap_numerator", to=2), "is above the denominator"),
        (PLAIN, put("problem", "levels", to=[[8, 0], [4, 0]]), "do not go from small groups to large ones"),
        (PLAIN, put("problem", "levels", to=[[2, 0]]), "do not span the devices"),
        (PLAIN, put("plan", "stages", 0, "micro_batch", to=3), "does not divide the samples of a pipeline"),
        (PLAIN, put("plan", "stages", 0, "compute_ns", to=[]), "does not have one row for each operator"),
        (PLAIN, put("plan", "stages", 0, "memory_bytes", to=[1, 2, 3]), "does not have four amounts"),
        (PLAIN, put("plan", "pipelines", to=2), "are not 2 whole pipelines"),
        (PLAIN, put("plan", "order_edges", to=[[0, 9]]), "are not stages of one pipeline"),
        (PLAIN, stage_waits_for_itself, "some stages wait for each other in a circle"),
        (PLAIN, put("plan", "stages", 0, "operators", to=[]), r"is empty|row for each operator"),
        (REPLICAS, shared_device, "shares device 0 with a stage of other devices"),
        (PLAIN, put("problem", "pins", "micro_batch", to=4), "the problem pins it to 4"),
        (PLAIN, put("problem", "pins", "recompute", to="stage"), "does not recompute as the problem pins it"),
        (PLAIN, put("plan", "messages", 0, to=["F", 0, 2, 0, 0, 1, []]), "is of no message of the plan"),
        (PLAIN, put("plan", "messages", to=[]), "messages: lacks "),
        (ASTRIDE, put("plan", "messages", 0, 6, to=[]), "does not have the ports of the levels that it crosses"),
        (
            ASTRIDE,
            put("plan", "messages", 0, 6, 0, 0, to=0),
            "does not have the ports of the levels that it crosses",
        ),
        (PLAIN, put("plan", "stages", to=None), "plan.stages: is no list"),
        (PLAIN, put("about", "planner", to="\ud800"), "about.planner: is no text"),
        (PLAIN, put("schedule", "lanes", 0, "devices", to=[3]), "are those of another lane, or of no stage"),
        (PLAIN, on_another_lane, "not on those of its stage"),
        (PLAIN, longer_message, r"lasts .* ns, not"),
        (PLAIN, put("schedule", "lanes", 0, "together", to=[0, 1]), "has a task in two pairs"),
        (PLAIN, put("schedule", "kind", to="periodic"), "lacks the field 'round'"),
        (PLAIN, put("plan", "stages", 0, "in_flight", to=1), "in flight, more than it declares"),
        (PLAIN, put("bound", "operator", to=0), r"bound.operator|has the field 'operator'"),
        (PAIRS, put("plan", "stages", 2, "devices", to=[0]), "stands where its mirror does"),
        (PAIRS, put("plan", "stages", 2, "micro_batch", to=2), "is not like stage 0"),
        (PAIRS, put("plan", "hidden_ns", 0, 3, to=1), "not the overlap's share"),
        (PATTERN, put("problem", "regime", to="sync"), r"a schedule without end has no flush|lasts"),
        (PATTERN, put("claims", "fit", to="tight"), r"claims.fit"),
        (REPLICAS, put("problem", "mini_batch", to=2**60), r"choices|lanes|micro_batch"),
    ],
)
def test_every_rule_has_its_words(name: str, change: Callable[[Any], None], words: str) -> None:
    content = content_of(name)
    change(content)
    with pytest.raises(Refused, match=words):
        check(written(content))


def test_who_was_there_first_goes_first() -> None:
    """Two stages, one link, two tensors made at once: they go by number."""
    content = content_of("chain, gpipe, half")
    rows = content["schedule"]["messages"]
    waiting = [(one, other) for one in rows for other in rows if one[6] == other[5] and one[5] < other[5]]
    found = False
    for one, other in waiting:
        if one[6] - one[5] != other[6] - other[5] or one[:2] != other[:2]:
            continue
        swapped = json.loads(json.dumps(content))
        listed = swapped["schedule"]["messages"]
        listed[rows.index(one)][5:], listed[rows.index(other)][5:] = other[5:], one[5:]
        with pytest.raises(Refused):
            check(written(swapped))
        found = True
    assert found
