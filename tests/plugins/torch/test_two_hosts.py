"""Two hosts: network namespaces, each with an address, and a name that stands for its loopback as on Debian."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench.documents.document import PlannedProblem
from pipebench.domain.plan import Plan
from pipebench.formats.documents import read_document, write_document
from pipebench_torch.processes import meeting
from pipebench_torch.processes.meeting import Meeting, address_towards, interface_of
from pipebench_torch.processes.nodes import RunNode
from tests.plugins.torch.small import diamond, problem_of, stages

NETWORK = "10.97.31."


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The names of two namespaces that see each other, and nothing else."""
    names = (f"one{os.getpid()}", f"two{os.getpid()}")
    ends = (f"a{os.getpid()}", f"b{os.getpid()}")
    if os.geteuid() or not shutil.which("ip") or not shutil.which("unshare"):
        pytest.skip("network namespaces need root, ip and unshare")
    made = [["netns", "add", name] for name in names]
    made.append(["link", "add", ends[0], "type", "veth", "peer", "name", ends[1]])
    for number, (name, end) in enumerate(zip(names, ends, strict=True), start=1):
        made.append(["link", "set", end, "netns", name])
        made.append(["-n", name, "addr", "add", f"{NETWORK}{number}/24", "dev", end])
        made += [["-n", name, "link", "set", each, "up"] for each in ("lo", end)]
    try:
        for words in made:
            done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"no network namespaces here: ip {' '.join(words)}: {done.stderr.strip()}")
        tried = on_host(names[0], 1, tmp_path, ["true"])
        if tried.wait():
            pytest.skip(f"no host in a namespace here: {tried.communicate()[1].strip()}")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def on_host(name: str, number: int, folder: Path, command: list[str]) -> "subprocess.Popen[str]":
    """Start a command on a host that calls itself host-1 or host-2, and knows itself by its loopback."""
    known = folder / f"hosts-{number}"
    other = 3 - number
    known.write_text(f"127.0.0.1 localhost\n127.0.1.1 host-{number}\n{NETWORK}{other} host-{other}\n")
    script = f'mount --bind {known} /etc/hosts && hostname host-{number} && exec "$@"'
    own = ["ip", "netns", "exec", name, "unshare", "--uts", "--mount", "sh", "-c", script, "sh", *command]
    environment = {key: value for key, value in os.environ.items() if key != "GLOO_SOCKET_IFNAME"}
    return subprocess.Popen(
        own, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(nodes: "list[subprocess.Popen[str]]") -> list[tuple[str, str]]:
    """What they printed; none is left."""
    try:
        return [node.communicate(timeout=200) for node in nodes]
    finally:
        for node in nodes:
            node.kill()


@pytest.mark.nightly
def test_hosts_that_know_themselves_by_their_loopback_find_each_other(
    hosts: tuple[str, str], tmp_path: Path
) -> None:
    problem = problem_of(diamond(), 2, 8)
    plan = Plan(stages=stages([("a", "b0", "b"), ("c", "concat", "d", "e")], micro_batch=2))
    write_document(tmp_path / "plan.json", "plan", PlannedProblem(problem=problem, plan=plan, scheduler="1f1b"))
    options = "torch[device=cpu,iterations=2,least_s=0,warmup=0,verify=yes]"
    command = [sys.executable, "-m", "pipebench", "execute", "plan.json", "--executor", options, "--json"]
    command += ["--timeout", "120", "--nnodes", "2", "--rendezvous", "host-1:29500", "--node-rank"]
    nodes = [on_host(name, rank + 1, tmp_path, [*command, str(rank)]) for rank, name in enumerate(hosts)]
    told = ended(nodes)
    assert [node.returncode for node in nodes] == [0, 0], told
    first, second = (json.loads(out) for out, _ in told)
    assert first["measured"] == second["measured"]
    assert first["notices"][0] == "gradients equal those of a single process: exactly, in float64"


@pytest.mark.nightly
def test_links_inside_hosts_and_between_them(hosts: tuple[str, str], tmp_path: Path) -> None:
    """The wire between them carries 800 Mbit/s, whoever sends; inside a host it is the loopback."""
    for name in hosts:
        (device,) = subprocess.run(
            ["ip", "-n", name, "-br", "link", "show", "type", "veth"], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        limit = f"qdisc add dev {device.partition('@')[0]} root tbf rate 800mbit burst 16kb latency 50ms"
        if (
            not shutil.which("tc")
            or subprocess.run(["tc", "-n", name, *limit.split()], check=False, capture_output=True).returncode
        ):
            pytest.skip("no tc with tbf to hold the wire to a rate")
    command = [sys.executable, "-m", "pipebench", "profile", "--links", "4", "--profiler", "torch"]
    command += ["--device", "cpu", "--nnodes", "2", "--rendezvous", "host-1:29500"]
    nodes = [
        on_host(name, rank + 1, tmp_path, [*command, "--node-rank", str(rank), "-o", f"links-{rank}.json"])
        for rank, name in enumerate(hosts)
    ]
    told = ended(nodes)
    assert [node.returncode for node in nodes] == [0, 0], told
    first, second = ((tmp_path / f"links-{rank}.json").read_text() for rank in range(2))
    assert first == second
    cluster = read_document(tmp_path / "links-0.json", "cluster")
    node, wire = cluster.levels
    assert (cluster.size, node.group, wire.group) == (4, 2, 4)
    assert wire.shared_bandwidth_bytes_s is not None
    assert 4e7 < wire.shared_bandwidth_bytes_s < 1.02e8  # never more than the wire carries
    assert 4e7 < wire.bandwidth_bytes_s < 2e8  # small messages pass in one burst
    assert node.bandwidth_bytes_s > 2 * wire.bandwidth_bytes_s


@pytest.mark.parametrize("rank", [0, 1])
def test_a_node_goes_by_the_way_to_the_other(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Node 0 is host-1, which it knows as 127.0.1.1 itself."""
    ways = {(0, "10.0.0.2"): "10.0.0.1", (0, "host-1"): "127.0.1.1", (1, "host-1"): "10.0.0.2"}
    found = {"10.0.0.1": "wire0", "10.0.0.2": "wire1", "127.0.1.1": "lo"}
    monkeypatch.setattr(meeting, "address_towards", lambda host: ways[rank, host])
    monkeypatch.setattr(meeting, "interface_of", lambda address: found[address])
    met = Meeting.__new__(Meeting)
    met.node = RunNode(processes=(1, 1), rank=rank, host="host-1", port=1)
    met.store = SimpleNamespace(get=lambda key: {"address/1": b"10.0.0.2"}[key])
    assert met.interface() == f"wire{rank}"
    met.node = RunNode(processes=(2,))
    assert met.interface() == ("lo" if sys.platform == "linux" else "")


def test_the_interface_of_an_ipv6_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "if_inet6"
    file.write_text(
        "fe800000000000000000000000000001 02 40 20 80     eth0\n"
        "fd980000000000000000000000000002 03 40 00 80     ib0\n"
    )
    monkeypatch.setattr(meeting, "IPV6", file)
    if sys.platform == "linux":
        assert interface_of("fd98::2") == "ib0"
        assert interface_of("fe80::1%eth0") == "eth0"
        assert interface_of("fd98::3") == ""


def test_of_several_addresses_of_a_host_the_ipv4_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does for gloo."""
    six = (socket.AF_INET6, socket.SOCK_DGRAM, 0, "", ("::1", 9, 0, 0))
    four = (socket.AF_INET, socket.SOCK_DGRAM, 0, "", ("127.0.0.1", 9))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [six, four])
    assert address_towards("both") == "127.0.0.1"


def test_the_interface_of_an_address() -> None:
    assert address_towards("127.0.0.1") == "127.0.0.1"
    assert interface_of("127.0.0.1") == ("lo" if sys.platform == "linux" else "")
    assert interface_of("203.0.113.7") == ""  # nobody's: kept for documentation, RFC 5737
    assert address_towards("no-such-host.invalid") == ""
