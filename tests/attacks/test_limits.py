"""Bombs and lax reading: what is too large, too deep or no figure is one clear line, soon and in little memory."""

import gzip
import json
import os
import re
import signal
import stat
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipebench.bench.calibration.megatron_log import megatron_run
from pipebench.bench.redaction import Redaction
from pipebench.bench.store import Store
from pipebench.bench.store.folder import ROWS
from pipebench.bench.store.journal import MANIFEST
from pipebench.bench.store.lines import with_checksum
from pipebench.bench.sweeps import backends
from pipebench.cli.main import run
from pipebench.documents.decoding import bounded_json, bounded_toml, gunzip, require_unique_keys
from pipebench.documents.document import encode
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_LEVELS, MOST_WORKERS
from pipebench.formats.clusters import load_cluster
from pipebench.formats.json_forms import json_form
from pipebench.formats.profiles.files import read_profile
from pipebench.hooks.syntax import Reference, parse_reference, parse_references
from tests.bench.store.made import PLAN, PROBLEM, SCHEDULE, stored
from tests.builders import chain_problem, cluster

CPU_S, PEAK_BYTES = 10.0, 10**9
HEADER = b"name,forward_ms,backward_ms,activation_bytes,weight_bytes\n"
PROFILE = chain_problem([3, 5], [4, 6], cluster(2), mini_batch=2).profile


@dataclass(frozen=True)
class Ended:
    """A command that ended: its exit code, what it said, CPU seconds and the most memory that it held."""

    code: int
    out: str
    err: str
    cpu_s: float
    peak_bytes: int


CHILD = """
import atexit, resource, sys
from pathlib import Path

def tell():
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    cpu = resource.getrusage(resource.RUSAGE_SELF)
    Path(used).write_text(f"{cpu.ru_utime + cpu.ru_stime} {1024 * int(peak.split()[1])}")

resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
atexit.register(tell)
used, sys.argv = sys.argv[1], ["pipebench", *sys.argv[2:]]
from pipebench.cli.main import entry
entry()
"""


def pipebench(folder: Path, *arguments: str) -> Ended:
    """Run the command in a process of its own; it is stopped after two minutes and at 6 GB of addresses."""
    if not Path("/proc/self/status").exists():
        pytest.skip("there is no /proc here to read the most memory from")
    used = folder / "used.txt"
    command = [sys.executable, "-c", CHILD, str(used), *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
    cpu_s, peak_bytes = map(float, used.read_text().split())
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode(), cpu_s, int(peak_bytes))


def refused_soon(ended: Ended, message: str) -> None:
    assert (ended.code, ended.out) == (2, ""), ended
    assert re.search(message, ended.err), ended.err
    assert "Traceback" not in ended.err
    assert len(ended.err) < 2000
    assert ended.cpu_s < CPU_S
    assert ended.peak_bytes < PEAK_BYTES


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with one row."""
    made = Store.open(tmp_path / "store")
    made.append(stored(0), PROBLEM, PLAN, SCHEDULE)
    return tmp_path / "store"


def repeated_gzip(block: bytes, times: int) -> bytes:
    """A gzip file of a block many times over, compressed once."""
    return gzip.compress(block) * times


def test_a_gzip_bomb_for_attach(tmp_path: Path, store: Path) -> None:
    """4 GB of JSON in 8 MB."""
    bomb = tmp_path / "rank0.json.gz"
    bomb.write_bytes(gzip.compress(b'{"traceEvents":[') + repeated_gzip(b'{"ph":"M"},' * 3_000_000, 128))
    assert bomb.stat().st_size < 10_000_000
    refused_soon(pipebench(tmp_path, "attach", str(store), str(bomb)), r"more than 256 MiB")


def test_a_gzip_file_just_below_the_limit_of_bytes_is_bounded_by_its_elements(tmp_path: Path, store: Path) -> None:
    bomb = tmp_path / "rank0.json.gz"
    bomb.write_bytes(gzip.compress(b'{"traceEvents":[') + repeated_gzip(b"{}," * 1_000_000, 80))
    refused_soon(pipebench(tmp_path, "attach", str(store), str(bomb)), r"elements, at most 10000000 are read")


def zip_of(members: dict[str, tuple[bytes, int]]) -> bytes:
    """A zip whose members are a block many times over, each compressed once."""
    made, directory = bytearray(), bytearray()
    for name, (block, times) in members.items():
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        piece = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
        data = piece * times + zlib.compressobj(9, zlib.DEFLATED, -15).flush()
        check = 0
        for _ in range(times):
            check = zlib.crc32(block, check)
        sizes = struct.pack("<LLL", check, len(data), len(block) * times)
        fields = struct.pack("<HHHHH", 20, 0, 8, 0, 33) + sizes + struct.pack("<HH", len(name), 0)
        directory += b"PK\1\2" + struct.pack("<H", 20) + fields + struct.pack("<HHHLL", 0, 0, 0, 0, len(made))
        directory += name.encode()
        made += b"PK\3\4" + fields + name.encode() + data
    end = struct.pack("<HHHHLLH", 0, 0, len(members), len(members), len(directory), len(made), 0)
    return bytes(made + directory + b"PK\5\6" + end)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (b"{}\n" * 2**20, "more than 10000 lines are damaged"),
        (b" " * 2**22, r"rows\.jsonl is too large: at most 256 MiB"),
        (b'{"a":[' + b"1," * 2**20 + b"1]}\n", "elements are read"),
    ],
)
def test_a_zip_bomb_for_show(tmp_path: Path, store: Path, block: bytes, message: str) -> None:
    """1 GB of rows in less than 1 MB or so."""
    bomb = tmp_path / "store.zip"
    manifest = (store / MANIFEST).read_bytes()
    bomb.write_bytes(zip_of({MANIFEST: (manifest, 1), ROWS: (block, 2**30 // len(block))}))
    assert bomb.stat().st_size < 6_000_000
    refused_soon(pipebench(tmp_path, "show", str(bomb)), message)


def test_a_zip_of_many_equal_rows(tmp_path: Path, store: Path) -> None:
    """Each line is a row that can be read; there are 800 MB of them."""
    line = (store / ROWS).read_bytes()
    block = line * (2**20 // len(line))
    bomb = tmp_path / "store.zip"
    manifest = (store / MANIFEST).read_bytes()
    bomb.write_bytes(zip_of({MANIFEST: (manifest, 1), ROWS: (block, 800)}))
    refused_soon(pipebench(tmp_path, "show", str(bomb)), "too much|too large")


def test_a_zip_with_more_members_than_are_listed(tmp_path: Path) -> None:
    """The list of files is not even read."""
    name = b"a" * 20
    entry = b"PK\1\2" + struct.pack("<HHHHHHLLLHHHHHLL", 20, 20, 0, 0, 0, 33, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0) + name
    directory = entry * 800_000
    end = struct.pack("<HHHHLLH", 0, 0, 0xFFFF, 0xFFFF, len(directory), 0, 0)
    (tmp_path / "store.zip").write_bytes(directory + b"PK\5\6" + end)
    refused_soon(pipebench(tmp_path, "show", str(tmp_path / "store.zip")), "at most 200000 files")


TOML_BOMBS: dict[str, tuple[bytes, str]] = {
    "dotted key": (b"a" + b".a" * 100_000 + b" = 1\n", "more than 32 dotted parts"),
    "quoted key": (b'"a"' + b' . "a"' * 50_000 + b" = 1\n", "more than 32 dotted parts"),
    "dotted header": (b"[a" + b".'a'" * 50_000 + b"]\n", "more than 32 dotted parts"),
    "long parts": (b"a" * 400 + (b"." + b"a" * 400) * 4000 + b" = 1\n", "more than 32 dotted parts"),
    "lists": (b"a = " + b"[" * 100_000 + b"]" * 100_000, "nested more than 64 deep"),
    "tables": (b"a = " + b"{a=" * 100_000 + b"1" + b"}" * 100_000, "nested more than 64 deep"),
    "digits": (b"a = " + b"1" * 1_000_000, "more than 4300 digits"),
    "bytes": (b"# x\n" * 1_000_000, "at most 2 MiB"),
    "quotes": (b"a = " + b'"\\"' * 300_000, "not valid TOML"),
    "open quotes": (b"a = " + b'\\"' * 500_000, "not valid TOML"),
}


@pytest.mark.parametrize("name", TOML_BOMBS)
def test_toml_bombs(tmp_path: Path, name: str) -> None:
    """As a cluster; each file has at most a few MB."""
    data, message = TOML_BOMBS[name]
    (tmp_path / "c.toml").write_bytes(data)
    began = time.process_time()
    with pytest.raises(PipebenchError, match=message) as caught:
        load_cluster(str(tmp_path / "c.toml"), 2)
    assert time.process_time() - began < CPU_S
    assert len(str(caught.value)) < 2000


def test_a_dotted_key_100000_deep(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(TOML_BOMBS["dotted key"][0])
    arguments = ("--profile", "resnet50", "--cluster", str(tmp_path / "c.toml"), "--devices", "2")
    refused_soon(pipebench(tmp_path, "compare", *arguments), "more than 32 dotted parts")


def test_honest_toml_passes_the_scan() -> None:
    text = b"""# a comment with a.b.c.d and [[[
    sources = ["https://a.b.c.d.e.f/g.h", 'x["'] # more
    [a.b."c.d".'e.f']
    note = \"\"\"text [[[ "quoted" { a.b.c \"\"\"
    rates = [1.5, 2.5e-3, [1, [2]]]
    """
    assert bounded_toml(b"\xef\xbb\xbf" + text, "x.toml") == text


def said(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and standard error of a command that runs in this process, in the folder."""
    import contextlib
    import io

    out, err = io.StringIO(), io.StringIO()
    before = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(list(arguments))
    finally:
        os.chdir(before)
    return code, err.getvalue()


def document(**changed: Any) -> bytes:
    return json.dumps({"pipebench": "profile", "version": 1, **changed}).encode()


JSON_BOMBS: dict[str, tuple[bytes, str]] = {
    "brackets": (b"[" * 1_000_000 + b"]" * 1_000_000, "nested more than 64 deep"),
    "open brackets": (b'{"pipebench":"profile","version":1,"content":' + b"[" * 1_000_000, "nested more than 64"),
    "objects": (b'{"rows":' + b'{"a":' * 500_000 + b"1" + b"}" * 500_001, "nested more than 64 deep"),
    "hidden by strings": (b'["]",' * 1000 + b"1" + b"]" * 1000, "nested more than 64 deep"),
    "elements": (b'{"pipebench":"profile","version":1,"content":[' + b"[]," * 20_000_000, "at most 20000000"),
    "list of lists": (b"[" + b"[]," * 3_000_000 + b"1]", "at most 2000000 are read"),
}


@pytest.mark.parametrize("name", JSON_BOMBS)
def test_json_bombs(tmp_path: Path, name: str) -> None:
    data, message = JSON_BOMBS[name]
    (tmp_path / "x.json").write_bytes(data)
    refused_soon(pipebench(tmp_path, "show", str(tmp_path / "x.json")), message)


def test_levels_are_counted_exactly() -> None:
    for levels in (1, MOST_LEVELS - 1, MOST_LEVELS):
        assert bounded_json(b"[" * levels + b"]" * levels, "x")
        assert bounded_json(b'{"[[[[":' * levels + b"1" + b"}" * levels, "x")
    for text in (b"[" * 65 + b"]" * 65, b'{"]":' * 65 + b"1" + b"}" * 65, b'[1,{"a":' * 33 + b"1" + b"}]" * 33):
        with pytest.raises(PipebenchError, match="x: brackets are nested more than 64 deep"):
            bounded_json(text, "x")
    assert bounded_json(b"[[1],[2]," * 60, "x")  # cut short: the decoder says so


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (encode("profile", PROFILE).replace(b"3e-9", b"1" * 1_000_000), r"forward_s\[0\].*4300 digits"),
        (HEADER + b"a," + b"1" * 1_000_000 + b",1,1,1\n", "field larger than field limit|forward is '1111"),
        (b'[{"name":"a","forward_ms":' + b"1" * 1_000_000 + b"}]", "4300 digits"),
        (b'{"maxDevices":' + b"1" * 1_000_000 + b"}", "4300 digits"),
        (b'{"maxFPGAs":' + b"1" * 1_000_000 + b"}", "4300 digits"),
    ],
)
def test_an_integer_of_a_million_digits(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "x.json").write_bytes(data)
    began = time.process_time()
    code, err = said(tmp_path, "show", "x.json")
    assert time.process_time() - began < CPU_S
    assert code == 2
    assert re.search(message, err), err
    assert len(err) < 2000


def test_paths_in_a_long_text_are_found_in_one_pass() -> None:
    """With the square of its length this took hours."""
    began = time.process_time()
    texts = ["'~/" + "a/" * 300_000, "'" + "/" * 600_000, "/a" * 300_000]
    assert [Redaction(()).text(f"see {text}")[-3:] for text in texts] != []
    assert Redaction(()).text("in '/home/me/my plans' and \"~/mine/x\"") == "in '…/my plans' and \"…/x\""
    assert time.process_time() - began < CPU_S


def test_blanks_in_a_command_are_passed_once() -> None:
    """A stored row names its planner so."""
    began = time.process_time()
    command = "cmd:./mine" + " " * 300_000 + "x"
    assert parse_reference(f"{command}[seed=1]  ") == Reference(command, {"seed": "1"})
    assert parse_references([f"{command}, uniform"])[1] == Reference("uniform")
    assert time.process_time() - began < CPU_S


def test_arguments_of_a_log_are_found_in_one_pass() -> None:
    began = time.process_time()
    text = "- arguments -\n" + "a . " * 500_000 + "\n hidden_size ..... 64\n"
    with pytest.raises(PipebenchError, match="x: "):
        megatron_run(text, "x", "A100-SXM4-80GB")
    assert time.process_time() - began < CPU_S


def test_a_gzip_file_of_many_empty_members_takes_no_longer_than_it_is_long() -> None:
    assert gunzip(gzip.compress(b"") * 100_000 + gzip.compress(b"{}"), "x") == b"{}"
    for damaged in (gzip.compress(b"{}")[:-9], b"\x1f\x8b" + bytes(20)):
        with pytest.raises(PipebenchError, match="x: not valid gzip"):
            gunzip(damaged, "x")


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_rows_that_are_no_file(tmp_path: Path, store: Path, kind: str) -> None:
    """Reading and writing the store end at once."""
    rows = store / ROWS
    rows.unlink()
    if kind == "pipe":
        os.mkfifo(rows)
    elif kind == "device":
        rows.symlink_to("/dev/zero")
    else:
        rows.mkdir()
    names = {"pipe": "is a pipe", "device": "is a device", "folder": "is a directory"}
    refused_soon(pipebench(tmp_path, "show", str(store)), names[kind])
    with pytest.raises(PipebenchError):
        in_time(lambda: Store.open(store))


def test_no_link_of_a_store_leads_writing_elsewhere(tmp_path: Path, store: Path) -> None:
    """A last line without an end was cut off, as if it were a torn row."""
    mine = tmp_path / "mine.txt"
    mine.write_text("first words\nlast words")
    rows = store / ROWS
    rows.unlink()
    rows.symlink_to(mine)
    with pytest.raises(PipebenchError, match=r"rows\.jsonl is a pipe, a device, a folder or a link"):
        Store.open(store)
    assert mine.read_text() == "first words\nlast words"


def in_time(call: Callable[[], object], seconds: int = 20) -> object:
    """The call's result; TimeoutError where it hangs."""

    def late(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        return call()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", ["lock", "pipe.json"])
def test_pipes_that_nobody_writes_to(tmp_path: Path, store: Path, name: str) -> None:
    """In place of the store's lock, and as a file that a user names."""
    pipe = store / name
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    target = pipe if name == "pipe.json" else store
    code, err = in_time(lambda: said(tmp_path, "show", str(target)))  # type: ignore[misc]
    assert code == 2
    assert re.search("is a pipe", err), err
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_is_piped_in_is_read(tmp_path: Path) -> None:
    """Standard input is the command's own, so that a pipe there is read."""
    code = "from pipebench.system.files import read_file; print(len(read_file('/dev/stdin')))"
    done = subprocess.run([sys.executable, "-c", code], input=b"x" * 200_000, capture_output=True, check=True)
    assert done.stdout == b"200000\n"


def test_no_more_workers_than_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--jobs 100000`: as many as there are trials, and never more than the limit."""
    started: list[int] = []

    class Stopped(Exception):
        pass

    def executor(max_workers: int, timeout: float, initializer: object, initargs: object, env: object) -> None:
        assert env == {"PYTHONSAFEPATH": "1"}, "workers import nothing from the current folder"
        started.append(max_workers)
        raise Stopped

    monkeypatch.setattr("joblib.externals.loky.get_reusable_executor", executor)
    for trials in (1, 3, 10**5):
        with pytest.raises(Stopped):
            next(backends.on_loky([b""] * trials, 100_000))
    assert started == [1, 3, MOST_WORKERS]
    assert list(backends.on_loky([], 100_000)) == []


# Lax


def test_a_file_is_told_by_its_fields_not_by_words_in_it(tmp_path: Path) -> None:
    """Rows of models and planners with names of fields are rows; a profile named so is a profile."""
    words = ("layers", "TMPCs", "maxFPGAs", "fpgaLatency", "mbsInBatch", "pipebench", "shared_devices")
    rows = {"rows": [json.loads(encode("rows", None) or b"null")["content"]], "cached": []}
    rows["rows"] = []
    for word in words:
        import msgspec

        row = msgspec.to_builtins(stored(0).row) | {"model": word, "planner": word, "counters": {word: 1}}
        rows["rows"].append(row)
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    code, err = said(tmp_path, "show", "rows.json")
    assert (code, err) == (0, "")
    named = encode("profile", PROFILE).replace(b'"op0"', b'"layers"').replace(b'"op1"', b'"TMPCs"')
    (tmp_path / "p.json").write_bytes(named)
    assert read_profile(str(tmp_path / "p.json")).graph.operators[0].name == "layers"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (b'{"rows": [{"model": "layers"}]}', "native"),
        (b'{"content": {"layers": 1}, "pipebench": "plan"}', "native"),
        (b'{"layers": [{"name": "maxDevices"}]}', "layers"),
        (b'\xef\xbb\xbf \n[{"name": "a"}]', "layers"),
        (b'{"nodes": [{"id": 1, "TMPCs": {}}]', "piper"),
        (b'{"nodes": [{"id": 1, "a": {"TMPCs": 1}, "fpgaLatency": 3', "tarnawski"),
        (b'{"edges": [' + b'{"sourceId": 1},' * 10_000 + b'{"a": "maxFPGAs"}], "maxDevices": 3}', "piper"),
        (b'{"a": "\\"layers\\": ", "b": ["layers"], "maxFPGAs": 1}', "tarnawski"),
        (b"{}", "native"),
        (b"name,forward_ms\nlayers,3", None),
        (b"", None),
    ],
)
def test_the_form_of_json(text: bytes, form: str | None) -> None:
    assert json_form(text) == form


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (b'{"a":1,"a":1}', r"\$\.a occurs twice"),
        (b'{"a":[{},{"b":1 , "c":{"d":1,"e":[],"d":2}}]}', r"\$\.a\[1\]\.c\.d occurs twice"),
        (b'{"a":1,"\\u0061":2}', r"\$\.a occurs twice"),
        (b'{"a\\u0022:":1,"b":{"x":1,"x":2}}', r"\$\.b\.x occurs twice"),
        (b'{"\\"a\\":":"\\":","\\"a\\":":1}', ".*occurs twice"),
    ],
)
def test_keys_that_occur_twice(text: bytes, path: str) -> None:
    with pytest.raises(PipebenchError, match=f"x: {path}"):
        require_unique_keys(text, "x")


def test_keys_that_occur_once() -> None:
    for text in (
        b'{"a":"a\\":","b":{"a":1},"c":[{"a":1},{"a":1}]}',
        b'{"\\u0022:":"\\u0022:","x":"\\u003a"}',
        b"3",
    ):
        require_unique_keys(text, "x")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "p.json",
            encode("profile", PROFILE).replace(b'"forward_s":[3e-9]', b'"forward_s":[1],"forward_s":[3e-9]'),
            r"\$\.content\.costs\[0\]\.operators\[0\]\.forward_s occurs twice",
        ),
        ("x.json", b'[{"name":"a","name":"b","forward_s":1}]', r"\$\[0\]\.name occurs twice"),
        (
            "x.piper.json",
            b'{"maxFPGAs":1,"maxFPGAs":2,"maxCPUs":1,"maxSizePerFPGA":9,"nodes":[],"edges":[]}',
            r"\$\.maxFPGAs occurs twice",
        ),
        ("x.csv", b"name,forward_ms,fwd_s,backward_ms,activation_bytes,weight_bytes\n", "'forward' occurs twice"),
        ("x.csv", b"name,name,forward_ms,backward_ms,activation_bytes,weight_bytes\n", "'name' occurs twice"),
    ],
)
def test_repeated_keys_of_files(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    code, err = said(tmp_path, "show", name)
    assert code == 2
    assert re.search(message, err), err


def test_repeated_keys_of_a_store(store: Path) -> None:
    """The line is damaged, its path is in the notice."""
    rows = store / ROWS
    line = rows.read_bytes().replace(b'"row":{', b'"row":{"simulated_s":1.0,', 1)
    rows.write_bytes(with_checksum(line))
    opened = Store.open(store)
    assert opened.rows() == []
    assert re.search(r"line 1 is damaged and skipped: .*\$\.row\.simulated_s occurs twice", opened.notices[0])


def test_repeated_keys_of_toml(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('name = "a"\nname = "b"\n')
    with pytest.raises(PipebenchError, match="not valid TOML: Cannot overwrite a value"):
        load_cluster(str(tmp_path / "c.toml"), 2)


@pytest.mark.parametrize(
    "cell", ["1_0", "١٢", "１０", "-1", "inf", "nan", "1e400", "1e308", "0x10", "1e16", "1e9999"]
)
@pytest.mark.parametrize("column", [1, 3])
def test_figures_of_a_table_that_are_none(tmp_path: Path, cell: str, column: int) -> None:
    """In times and in bytes, of a CSV and of a JSON table; the error says where."""
    cells = ["a", "1", "1", "1", "1"]
    cells[column] = cell
    csv, table = tmp_path / "x.csv", tmp_path / "x.json"
    csv.write_text(HEADER.decode() + "b,1,1,1,1\n" + ",".join(cells) + "\n")
    field = HEADER.decode().strip().split(",")[column]
    with pytest.raises(PipebenchError, match=rf"x\.csv: line 3: {field.split('_')[0]} is '{re.escape(cell)}'"):
        read_profile(str(csv))
    row = {"name": "a", "forward_ms": 1, "backward_ms": 1, "activation_bytes": 1, "weight_bytes": 1}
    table.write_text(json.dumps({"layers": [row | {"name": "b"}, row | {field: cell}]}))
    with pytest.raises(PipebenchError, match=rf"x\.json: layers\[1\]\.{field} is '{re.escape(cell)}'"):
        read_profile(str(table))


@pytest.mark.parametrize(
    "number", [b"-1", b"1e400", b"1e16", b"1000000000000000000000000000000", b"NaN", b"Infinity"]
)
@pytest.mark.parametrize(
    ("old", "path"),
    [
        (b"3e-9", r"\$\.content\.costs\[0\]\.operators\[0\]\.forward_s\[0\]"),
        (b'"saved_bytes_per_sample":0.0', r"\$\.content\.costs\[0\]\.operators\[0\]\.saved_bytes_per_sample"),
    ],
)
def test_figures_of_a_profile_that_are_none(number: bytes, old: bytes, path: str) -> None:
    from pipebench.documents.document import decode

    key = old.rpartition(b":")[0]
    text = encode("profile", PROFILE)
    changed = text.replace(old, key + (b":" if key else b"") + number, 1)
    assert changed != text
    with pytest.raises(PipebenchError, match=rf"x: (at {path}: .|not valid JSON: )"):
        decode(changed, "profile", "x")


@pytest.mark.parametrize("number", ["-1", "1e400", "1e308", "1" + "0" * 400, "1e19"])
@pytest.mark.parametrize(
    "field",
    ["maxDevices", "maxFPGAs", "cpuLatency", "cost", "timePerSample", "communicationCost", "parameterSize"],
)
def test_figures_of_foreign_documents_that_are_none(tmp_path: Path, field: str, number: str) -> None:
    from tests.formats.test_foreign_errors import PIPER, TARNAWSKI

    text = next(t for t in (json.dumps(PIPER), json.dumps(TARNAWSKI)) if f'"{field}"' in t)
    changed = re.sub(rf'"{field}": [\d.e+]+', f'"{field}": {number}', text, count=1)
    assert changed != text
    (tmp_path / "x.json").write_text(changed)
    code, err = said(tmp_path, "show", "x.json")
    assert code == 2
    assert field in err
    assert len(err) < 2000


@pytest.mark.parametrize("number", ["1_0", "١", "-1", "inf", "1e400", "1e19"])
def test_figures_of_graph_txt_that_are_none(tmp_path: Path, number: str) -> None:
    costs = "forward_compute_time={}, backward_compute_time=0.0, activation_size={}, parameter_size=0"
    node = f"node1 -- Input0 -- {costs}"
    for fields in ((number, "1.0"), ("1.0", number)):
        (tmp_path / "graph.txt").write_text(node.format(*fields) + "\n")
        with pytest.raises(PipebenchError, match=rf"graph\.txt: line 1: \w+ is '{number}', it must be a finite"):
            read_profile(str(tmp_path / "graph.txt"))


def zero_profile() -> bytes:
    return encode("profile", chain_problem([0, 0], [0, 0], cluster(2), mini_batch=2).profile)


def test_a_profile_without_any_time_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "zero.json").write_bytes(zero_profile())
    arguments = ("--profile", "zero.json", "--devices", "2", "--memory", "16GB", "--mini-batch", "2")
    code, err = said(tmp_path, "compare", *arguments, "--planners", "uniform")
    assert code == 2
    assert "every time on device type 'gpu' is 0" in err
    assert "measure it again" in err


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf" + encode("profile", PROFILE)])
def test_json_behind_a_byte_order_mark_is_json(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "p.csv").write_bytes(data)
    assert read_profile(str(tmp_path / "p.csv")) == PROFILE
    (tmp_path / "p.csv").write_bytes(data[:-5])
    with pytest.raises(PipebenchError, match="not valid JSON"):
        read_profile(str(tmp_path / "p.csv"))


@pytest.mark.parametrize("number", ["1_0", "١٢", "１０"])
@pytest.mark.parametrize("option", ["--devices", "--timeout", "--repeat", "--mini-batch"])
def test_a_number_on_the_command_line_in_other_digits(
    capsys: pytest.CaptureFixture[str], option: str, number: str
) -> None:
    assert run(["compare", option, number]) == 2
    assert f"{number!r} is not a number in the digits 0 to 9" in capsys.readouterr().err
