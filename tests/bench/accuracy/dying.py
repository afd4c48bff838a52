"""In place of the errand that predicts runs: one that dies of a run."""

import os

import msgspec

from pipebench.bench.accuracy.errand import Prediction
from pipebench.bench.accuracy.expression import ExpressedRun
from pipebench.bench.searches.isolation.child import Channel
from pipebench.hooks.manager import Host


def die(host: Host, given: bytes, channel: Channel) -> None:
    """Answer each run with a word; end the process at the one that is called `deadly`."""
    del host, given
    for run in msgspec.msgpack.decode(channel.receive(), type=tuple[ExpressedRun, ...]):
        if run.id == "deadly":
            os._exit(3)
        channel.send(msgspec.msgpack.encode(Prediction(reason=f"{run.id} lived")))
