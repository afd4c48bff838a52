"""How a child ended is told, however long this process takes to listen; and for what the server has time."""

import os
import time

import pytest

from pipebench.bench.searches.isolation import client
from pipebench.bench.searches.isolation.child import Channel, Errand
from pipebench.bench.searches.isolation.client import child_environment, isolation, server_of_its_own
from pipebench.bench.searches.isolation.conversation import ChildExit, Handover
from pipebench.bench.searches.isolation.wire import HEADER, MESSAGE, READY, frame, write_all
from pipebench.domain.limits import MOST_MESSAGE_BYTES
from pipebench.hooks.manager import Host

LATE_S = 0.5
"""By then the server has said how the child ended, and has closed its line."""


def speak(host: Host, given: bytes, channel: Channel) -> None:
    """Send a message and end with what is handed over as exit code."""
    del host, given
    code = int(channel.receive())
    channel.send(b"last words")
    os._exit(code)


def speak_while_nobody_listens(host: Host, given: bytes, channel: Channel) -> None:
    """Be heard, send a message and end: both are there when this process looks again."""
    del host, given
    code = int(channel.receive())
    channel.progress(b"listen")
    time.sleep(LATE_S / 4)
    channel.send(b"last words")
    os._exit(code)


def read_a_part(host: Host, given: bytes, channel: Channel) -> None:
    """Send a message before all that is handed over was read."""
    del host, given
    write_all(channel._reports, frame(READY))
    os.read(channel._handed, 2**15)
    channel.send(b"enough")
    os.read(channel._handed, 2**15)
    os._exit(5)


def give_up(host: Host, given: bytes, channel: Channel) -> None:
    """Say that all is prepared, and end without waiting for anything."""
    del host, given
    os.set_blocking(channel._handed, False)
    channel.receive()  # finds nothing, and raises


def ended(work: str, handover: Handover, heard_s: float = 0.0) -> ChildExit:
    """Of a child that does `work`, heard by somebody who takes as many seconds for each message."""
    errand = Errand(work=f"{__name__}:{work}", warm=False, environment=child_environment(), memory_bytes=0)
    return isolation().run(errand, 20.0, handover, heard=lambda _: time.sleep(heard_s))


@pytest.mark.parametrize("heard_s", [0.0, LATE_S])
def test_a_child_that_ends_after_its_message(heard_s: float) -> None:
    found = ended("speak", Handover(payload=lambda _: b"3", limit_s=20.0), heard_s)
    assert (found.lost, found.code, found.messages) == (False, 3, [b"last words"])


def test_a_child_that_ends_after_its_message_while_nobody_listens() -> None:
    found = ended("speak_while_nobody_listens", Handover(payload=lambda _: b"3", limit_s=20.0), LATE_S)
    assert (found.lost, found.code, found.messages) == (False, 3, [b"last words"])


@pytest.mark.parametrize("heard_s", [0.0, LATE_S])
def test_a_child_that_does_not_read_what_it_is_handed(heard_s: float) -> None:
    found = ended("read_a_part", Handover(payload=lambda _: bytes(2**20), limit_s=20.0), heard_s)
    assert (found.lost, found.code, found.messages) == (False, 5, [b"enough"])


@pytest.mark.parametrize("payload_s", [0.0, LATE_S])
def test_a_child_that_ends_before_it_is_handed_anything(payload_s: float) -> None:
    def payload(about: bytes) -> bytes:
        time.sleep(payload_s)
        return b"3"

    found = ended("give_up", Handover(payload=payload, limit_s=20.0))
    assert (found.lost, found.code, found.messages) == (False, 1, [])


def test_to_get_warm_may_take_longer_than_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a new installation, with other work beside it, kernels are compiled for a minute and more."""
    with server_of_its_own():
        assert ended("speak", Handover(payload=lambda _: b"0", limit_s=20.0)).code == 0
        monkeypatch.setattr(client, "START_S", 0.01)
        isolation().prepare()
        assert isolation().fits()
        assert not ended("speak", Handover(payload=lambda _: b"0", limit_s=20.0)).lost


def babble(host: Host, given: bytes, channel: Channel) -> None:
    """Send a message, then a frame that is too long, and end or wait as is handed over."""
    del host, given
    ends = channel.receive() == b"end"
    channel.send(b"a message")
    write_all(channel._reports, HEADER.pack(MOST_MESSAGE_BYTES + 1) + MESSAGE)
    if ends:
        os._exit(0)
    time.sleep(60)


@pytest.mark.parametrize("then", [b"end", b"wait"])
def test_a_child_that_sends_no_frames_is_told_of_and_the_server_stays(then: bytes) -> None:
    server = isolation()
    found = ended("babble", Handover(payload=lambda _: then, limit_s=20.0))
    assert (found.lost, found.stopped, found.messages) == (False, False, [b"a message"])
    most = MOST_MESSAGE_BYTES
    assert found.words == f"its process sent a frame of {most + 1} bytes, at most {most} are read"
    assert isolation() is server


def report_often(host: Host, given: bytes, channel: Channel) -> None:
    """Say how far the work is in more bytes than are kept, then send a message."""
    del host, given
    channel.receive()
    for _ in range(5):
        channel.progress(bytes(MOST_MESSAGE_BYTES // 4))
    channel.send(b"done")


def test_progress_takes_no_room_from_the_message_behind_it() -> None:
    found = ended("report_often", Handover(payload=lambda _: b"", limit_s=20.0))
    assert (found.lost, found.stopped, found.messages) == (False, False, [b"done"])


def send_short_ones(host: Host, given: bytes, channel: Channel) -> None:
    """Send a thousand messages of no bytes."""
    del host, given
    channel.receive()
    for _ in range(1000):
        channel.send(b"")


def test_short_messages_count_by_the_memory_that_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """9,000 bytes come, and Python holds 34,000."""
    monkeypatch.setattr(client, "MOST_MESSAGE_BYTES", 10_000)
    found = ended("send_short_ones", Handover(payload=lambda _: b"", limit_s=20.0))
    assert (found.lost, found.words) == (False, "its process sent more than 10000 bytes")
