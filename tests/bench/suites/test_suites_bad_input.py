"""A suite that is wrong: one line that names the file and the place in it."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.bench.suites import Suite, load_suite
from pipebench.domain.errors import PipebenchError
from tests.bench.suite_files import HEAD, selected, workload, write

SHIPPED = Path(__file__).resolve().parents[3] / "pipebench" / "bench" / "suites"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "required field `name`"),
        (HEAD, "required field `workloads`"),
        (HEAD + "workloads = []\n", "workloads: Expected `array` of length >= 1"),
        (HEAD + "planers = ['madpipe']\n" + workload(), "unknown key 'planers' (did you mean 'planners'?"),
        (HEAD + workload(device=4), "unknown key 'workloads[0].device' (did you mean 'devices'?"),
        (HEAD + workload() + workload(memry="3GB"), "unknown key 'workloads[1].memry' (did you mean 'memory'?"),
        (HEAD + workload() + "[limits]\ntimeout = 3\n", "unknown key 'limits.timeout' (did you mean 'timeout_s'?"),
        (HEAD + workload(devices=None), "workloads[0]: Object missing required field `devices`"),
        (HEAD + workload(devices="eight"), "workloads[0].devices: Expected `int | array`, got `str`"),
        (HEAD + workload(devices=[2, 4.5]), "workloads[0].devices[1]: Expected `int`, got `float`"),
        (HEAD + workload(devices=[]), "workloads[0].devices: Expected `array` of length >= 1"),
        (HEAD + workload(memory=[]), "workloads[0].memory: Expected `array` of length >= 1"),
        (HEAD + workload(devices=0), "workloads[0].devices: Expected `int` >= 1"),
        (HEAD + workload(devices=[4, 0]), "workloads[0].devices[1]: Expected `int` >= 1"),
        (HEAD + workload(devices=10**30), "workloads[0].devices: Expected `int` <= 65536"),
        (HEAD + workload(mini_batch=0), "workloads[0].mini_batch: Expected `int` >= 1"),
        (HEAD + workload(mini_batch_per_device=2**31), "mini_batch is 17179869184"),
        (HEAD + workload(mini_batch=8, mini_batch_per_device=1), "not both"),
        (HEAD + workload(memory="12 potatoes"), "workloads[0]: memory: '12 potatoes' is not an amount of memory"),
        (HEAD + workload(memory=["3GB", "-1GB"]), "workloads[0]: memory: '-1GB' is not"),
        (HEAD + workload(bandwidth="12GB"), "workloads[0]: bandwidth: '12GB' is not a bandwidth"),
        (HEAD + workload(optimizer="adamw"), "workloads[0].optimizer: Invalid enum value 'adamw'"),
        (HEAD + workload(link_mode="quarter"), "workloads[0].link_mode: Invalid enum value 'quarter'"),
        (HEAD + workload(reserve=1), "workloads[0].reserve: Expected `float` < 1.0"),
        (HEAD + workload(reserve="nan"), "workloads[0].reserve: Expected `float`"),
        (HEAD + "regimes = ['sink']\n" + workload(), "regimes[0]: Invalid enum value 'sink'"),
        (HEAD + "planners = ['a', 'a']\n" + workload(), "planners: 'a' occurs twice"),
        (HEAD + "planners = ['a,']\n" + workload(), "planners: an empty name"),
        (HEAD + "schedulers = ['a[']\n" + workload(), "schedulers: brackets do not match"),
        (HEAD + "seed = -1\n" + workload(), "seed: Expected `int` >= 0"),
        (HEAD + workload() + "[limits]\ntimeout_s = 0\n", "limits.timeout_s: Expected `float` > 0.0"),
        (HEAD + workload() + "[limits]\ntimeout_s = inf\n", "limits.timeout_s: Expected `float` <= 1000000.0"),
        (HEAD + workload() + "[limits]\ntimeout_s = nan\n", "limits.timeout_s: Expected `float` > 0.0"),
        (HEAD + workload() + "[limits]\nmemory = '4'\n", "limits: memory: '4' is not an amount of memory"),
        (HEAD + workload() + "[limits]\nrepeat = 0\n", "limits.repeat: Expected `int` >= 1"),
        (HEAD + workload(model="mmt"), "a model or a profile"),
        (HEAD + workload(profile=None), "a model or a profile"),
        (
            HEAD + workload(profile="resnet5"),
            "workloads[0] (resnet5): there is neither a file nor a shipped profile",
        ),
        (HEAD + workload(profile="resnet5"), "did you mean 'resnet50'"),
        (HEAD + workload(profile="gone.json"), "there is no file"),
        (HEAD + workload(profile="a[b"), "workloads[0]: profile: 'a[b' is not a component"),
        (
            HEAD + workload(profile=None, model="mnt"),
            "workloads[0] (mnt): unknown model 'mnt' (did you mean 'mmt'?",
        ),
        (HEAD + workload(profile=None, model="mmt[branch=2]"), "did you mean 'branches'"),
        (HEAD + workload(profile=None, model="mmt", profiler="analytical"), "did you mean 'analytic'"),
        (HEAD + workload(cluster="madpip"), "unknown cluster 'madpip' (did you mean 'madpipe'?"),
        (HEAD + workload(mini_batch=12, micro_batch=[4, 8]), "workloads[0] (resnet50 micro_batch=8): "),
        (HEAD + workload(mini_batch=12, micro_batch=[4, 8]), "8 does not divide the mini-batch 12"),
        (HEAD + workload(name=""), "a workload has an empty name"),
        (
            HEAD + workload(name="a") + workload() + workload(name="a"),
            "workloads[0] and workloads[2] are both named 'a'",
        ),
        (
            HEAD + workload() + workload(name="again"),
            "workloads[0] (resnet50) and workloads[1] (again) are the same",
        ),
        (
            HEAD + workload(memory=["3GB", "3000MB"]),
            "memory=3GB) and workloads[0] (resnet50 memory=3000MB) are the same",
        ),
        (HEAD + workload(devices=[2, 2]), "are the same problem"),
        (HEAD.replace("mine", "a\\nb") + workload(), "control characters"),
        (
            HEAD + workload(devices=list(range(1, 60000)), mini_batch=[1, 2]),
            "119,998 workloads, a suite may have at most",
        ),
        ("name = \n", "not valid TOML"),
        (HEAD + HEAD, "not valid TOML"),
        ("\x00", "not valid TOML"),
        ("a = " + "[" * 100_000, "nested more than 64 deep"),
    ],
)
def test_one_line_names_the_file_and_the_place(tmp_path: Path, text: str, expected: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(PipebenchError) as caught:
        selected(file)
    said = str(caught.value)
    assert said.startswith(file)
    assert expected in said
    assert len(said.splitlines()) == 1


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True), name=st.sampled_from(["quick", "chains", "branches"]))
def test_a_truncated_suite_is_said_to_be_wrong_or_is_a_shorter_suite(
    tmp_path_factory: pytest.TempPathFactory, share: float, name: str
) -> None:
    data = (SHIPPED / f"{name}.toml").read_bytes()
    file = tmp_path_factory.mktemp("cut") / "cut.toml"
    file.write_bytes(data[: int(share * len(data))])
    whole = load_suite(name).suite
    cut = loaded(str(file))
    if isinstance(cut, str):
        assert cut.startswith(str(file))
        assert len(cut.splitlines()) == 1
    else:
        assert cut.name == whole.name
        assert 1 <= len(cut.workloads) <= len(whole.workloads)
        assert cut.workloads[:-1] == whole.workloads[: len(cut.workloads) - 1]


def loaded(file: str) -> Suite | str:
    """The suite, or what is said to be wrong with it."""
    try:
        return load_suite(file).suite
    except PipebenchError as error:
        return str(error)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(b"name = '\xff\xfe'")
    with pytest.raises(PipebenchError, match="not valid TOML"):
        load_suite(str(file))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("quik", "unknown suite 'quik' (did you mean 'quick'?"),
        ("quick.tml", "unknown suite 'quick.tml' (did you mean 'quick'?"),
        ("gone.toml", "there is no file 'gone.toml'"),
        ("./", "is a directory"),
        ("a\0.toml", "cannot read"),
        ("x" * 5000, "unknown suite"),
        ("quick,,chains", "an empty name"),
    ],
)
def test_a_suite_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PipebenchError) as caught:
        selected(name)
    assert expected in str(caught.value)


def test_two_suites_of_one_name(tmp_path: Path) -> None:
    first = write(tmp_path, HEAD + workload(devices=2), "first.toml")
    second = write(tmp_path, HEAD + workload(devices=4), "second.toml")
    with pytest.raises(PipebenchError, match=r"two suites are named 'mine': \S*first\.toml and \S*second\.toml"):
        selected(first, second)
    with pytest.raises(PipebenchError, match="two suites are named 'quick'"):
        selected("quick", "quick")
