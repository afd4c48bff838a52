"""Worlds whose cost model differs from the suite's in one place: `pipebench.costs.formula`.

Whoever reads costs from there still plans validly, honestly and optimally in each of them. Whoever restates a
formula does not.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from pipebench.costs.formula import Amount, Formula
from pipebench.domain.cluster import LinkLevel

WORLDS = ("state", "live", "update", "messages", "all")
"""More state in every stage; more bytes for each live micro-batch; a time for each stage and mini-batch;
messages twice as long; all of them."""
EACH_WORLD = [pytest.param(name, marks=() if name == "all" else pytest.mark.nightly) for name in WORLDS]
"""For tests: who holds in the last one, where everything is another, seldom fails in one of the others."""


@contextmanager
def altered(
    world: str, state_bytes: int = 500_000, live_bytes: int = 100_000, update_ns: int = 3_000_000
) -> Iterator[None]:
    """The cost model of a world, one of WORLDS, for what is made and asked inside.

    state_bytes: more in every stage. live_bytes: more of every stage, for each live micro-batch.
    update_ns: of every stage, once a mini-batch.
    """
    state, live, update, message = (
        Formula.state_bytes,
        Formula.live_bytes,
        Formula.update_ns,
        Formula.message_ns,
    )

    def more_state(self: Formula, parameter_bytes: Amount, replicas: int) -> Amount:
        return state(self, parameter_bytes, replicas) + state_bytes

    def more_live(self: Formula, kept_bytes: Amount) -> Amount:
        return live(self, kept_bytes) + live_bytes

    def longer_update(
        self: Formula, reduce_ns: Amount, parameter_bytes: Amount | int = 0, replicas: int = 1
    ) -> Amount:
        return update(self, reduce_ns, parameter_bytes, replicas) + update_ns

    def longer_message(level: LinkLevel, bytes_sent: Amount, senders: int, receivers: int) -> Amount:
        return 2 * message(level, bytes_sent, senders, receivers)

    changes: dict[str, dict[str, Callable[..., Any] | staticmethod[..., Any]]] = {
        "state": {"state_bytes": more_state},
        "live": {"live_bytes": more_live},
        "update": {"update_ns": longer_update},
        "messages": {"message_ns": staticmethod(longer_message)},
    }
    changes["all"] = {name: method for world in changes.values() for name, method in world.items()}
    with ExitStack() as patches:
        for name, method in changes[world].items():
            patches.enter_context(patch.object(Formula, name, method))
        yield
