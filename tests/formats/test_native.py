"""The project's own documents through files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.documents.document import PlannedProblem, encode
from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import Profile
from pipebench.formats.documents import decode_profile, read_document, read_plan, write_document
from pipebench.formats.profiles.files import read_any, read_profile
from tests.builders import chain_problem, cluster, stages_plan

PROBLEM = chain_problem([2, 7, 8], [1, 15, 11], cluster(2), activations=[1, 3, 15, 0], weights=[1, 1, 2])
PLANNED = PlannedProblem(problem=PROBLEM, plan=stages_plan([[0], [1, 2]]), planner="by hand")
DOCUMENT = encode("profile", PROBLEM.profile)


def test_round_trips(tmp_path: Path) -> None:
    plan, profile = tmp_path / "plan.json", tmp_path / "profile"
    write_document(plan, "plan", PLANNED)
    write_document(profile, "profile", PROBLEM.profile)
    assert read_plan(plan) == PLANNED
    assert read_profile(str(profile)) == PROBLEM.profile
    assert read_any(str(plan)) == ("plan", PLANNED)
    assert read_any(str(profile)) == ("profile", PROBLEM.profile)


def test_another_kind_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    write_document(path, "cluster", cluster(2))
    with pytest.raises(PipebenchError, match=r"cluster\.json: holds a cluster, not a plan"):
        read_plan(path)
    with pytest.raises(PipebenchError, match=r"cluster\.json: holds a cluster, not a profile"):
        read_profile(str(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"{}", "not a pipebench document"),
        (
            b'{"model_type": "llama", "layers": [1]}',
            "not a pipebench document.*config.json: give it with --config",
        ),
        (b'{"stages": [1, 2', "not valid JSON|truncated"),
        (b"[1]", "not a pipebench document"),
        (b'{"pipebench": "plan", "version": 1, "content": {}}', "Object missing required field"),
        (
            b'{"pipebench": "plam", "version": 1, "content": {}}',
            "unknown document kind 'plam'.*did you mean 'plan'",
        ),
        (b'{"pipebench": "plan", "version": 99, "content": {}}', "version 99"),
        (b'{"pipebench": "plan"', "not valid JSON"),
        ('{"pipebench": "plan"}'.encode("utf-16"), "not text: byte 0 is not UTF-8"),
        (
            b'{"pipebench": "plan", "version": 1, "content": {"problem": 1}}',
            r"at \$\.content\.problem: Expected `object`",
        ),
        (b'{"pipebench": "plan", "version": 1, "content": ' + b"[" * 100_000, "nested more than 64 deep"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(PipebenchError, match=message) as caught:
        read_document(path, "plan")
    assert "plan.json" in caught.value.message


@pytest.mark.parametrize("number", [b"-1.0", b"1e999", b"NaN", b'"fast"', b"null"])
def test_wrong_costs_are_refused(number: bytes) -> None:
    document = DOCUMENT.replace(b'"forward_s":[2e-9]', b'"forward_s":[' + number + b"]")
    assert document != DOCUMENT
    with pytest.raises(PipebenchError, match=r"here: (at \$\.content|not valid JSON)"):
        decode_profile(document, "here")


@given(st.integers(0, len(DOCUMENT) - 1))
def test_a_truncated_document_is_an_error(length: int) -> None:
    with pytest.raises(PipebenchError, match="here"):
        decode_profile(DOCUMENT[:length], "here")


@given(st.integers(0, len(DOCUMENT) - 1), st.integers(0, 255))
def test_a_changed_byte_gives_a_profile_or_an_error(position: int, byte: int) -> None:
    changed = bytearray(DOCUMENT)
    changed[position] = byte
    try:
        assert isinstance(decode_profile(bytes(changed), "here"), Profile)
    except PipebenchError:
        return
