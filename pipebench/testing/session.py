"""The parent's side: calls in child processes, one process for as many calls as it survives."""

import os
import signal
import time
from collections.abc import Sequence

import msgspec

from pipebench.bench.searches.isolation.child import Errand
from pipebench.bench.searches.isolation.client import Ended, errand_folder, isolation
from pipebench.bench.searches.isolation.wire import Broken, frames
from pipebench.bench.trials.trial import SEARCH_MEMORY_BYTES
from pipebench.domain.errors import PipebenchError
from pipebench.testing.calls import Answer, Call
from pipebench.testing.probe import WORK


def answers(calls: Sequence[Call]) -> dict[str, Answer]:
    """The answer to each call by its name. A call that ends its process costs only itself."""
    found: dict[str, Answer] = {}
    left = list(calls)
    while left:
        ended = _run(left)
        got = _decoded(ended)
        found |= {answer.name: answer for answer in got}
        left = left[len(got) :]
        if left:
            found[left[0].name] = _ended(left[0], ended)
            left = left[1:]
    return found


def _run(calls: Sequence[Call]) -> Ended:
    errand = Errand(
        work=WORK,
        given=msgspec.msgpack.encode(calls),
        folder=errand_folder(),
        environment=dict(os.environ),
        memory_bytes=SEARCH_MEMORY_BYTES,
    )
    return isolation().run(errand, time.monotonic() + sum(call.most_s for call in calls))


def _decoded(ended: Ended) -> list[Answer]:
    try:
        return [msgspec.msgpack.decode(payload, type=Answer) for payload in frames(ended.sent)]
    except (Broken, msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise PipebenchError(f"the process of the kit sent what is no answer: {error}") from None


def _ended(call: Call, ended: Ended) -> Answer:
    """The answer to the call that its process did not survive."""
    if ended.stopped or ended.code == -signal.SIGALRM:
        return Answer(name=call.name, ending="hung", reason=f"no answer within {call.most_s:g} s")
    last = [line for line in ended.output.strip().splitlines() if line.strip()]
    how = f"its process ended with {_code(ended.code)}"
    return Answer(name=call.name, ending="died", reason=f"{how}: {last[-1][:200]}" if last else how)


def _code(code: int) -> str:
    known = -code in set(signal.Signals)
    return signal.Signals(-code).name if code < 0 and known else f"exit code {code}"
