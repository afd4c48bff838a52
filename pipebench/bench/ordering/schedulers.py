"""Which schedulers the suite tries, and their attempts in child processes."""

import time
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from pipebench.bench.machine.memory_limit import SEARCH_MEMORY_BYTES
from pipebench.bench.ordering.errand import (
    LATE_S,
    ORDER_S,
    WORK,
    Attempt,
    OrderErrand,
    OrderReply,
    OrderRequest,
    order,
    out_of_time,
)
from pipebench.bench.searches.isolated import PREPARE_S
from pipebench.bench.searches.isolation.child import Errand
from pipebench.bench.searches.isolation.client import (
    child_environment,
    errand_folder,
    isolation,
)
from pipebench.bench.searches.isolation.conversation import ChildExit, Handover
from pipebench.bench.services import HostServices
from pipebench.defaults import scheduler_for
from pipebench.domain.placement import placement_kind_of
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.hooks.descriptors import Planner, Scheduler
from pipebench.hooks.manager import Host
from pipebench.hooks.placements import takes
from pipebench.hooks.syntax import parse_reference

PRODUCED: dict[RegimeMode, str] = {"sync": "finite", "async": "periodic"}
"""What schedulers of a regime produce."""


def tried_schedulers(host: Host, regime: RegimeMode) -> list[str]:
    """The schedulers that the suite tries on plans of that regime, by name."""
    found = []
    for name, registered in host.slot("schedulers").items():
        component = registered.component
        assert isinstance(component, Scheduler)
        if component.capabilities.produces == PRODUCED[regime] and not component.capabilities.named_only:
            found.append(name)
    return found


def candidates(host: Host, planner: Planner, regime: RegimeMode, plan: Plan) -> list[str]:
    """Those that take the placement and the replicas of the plan.

    The planner's own default comes first, then the suite's, then the others by name.
    All orders of a single stage take the same time: there the first one is enough.
    """
    devices = [stage.devices for stage in plan.stages]
    suite = scheduler_for(regime, placement_kind_of(devices, plan.pipelines), plan.takes_turns)
    first = [planner.default_scheduler.get(regime, ""), suite]
    names = [name for name in (*first, *tried_schedulers(host, regime)) if name]
    found = [name for name in dict.fromkeys(names) if _takes(host, name, plan)]
    return found[:1] if len(plan.stages) == 1 else found


def _takes(host: Host, name: str, plan: Plan) -> bool:
    registered = host.slot("schedulers").get(parse_reference(name).name)
    if registered is None:
        return False
    assert isinstance(registered.component, Scheduler)
    return takes(registered.component.capabilities, plan)


def order_all(host: Host, problem: Problem, attempts: Sequence[Attempt], seed: int) -> list[OrderReply]:
    """A reply for each attempt. Schedulers of one distribution share a child process, which knows no planner."""
    if host.code_here:
        services = HostServices(host, seed=seed)
        return [order(services, problem, tried) for tried in attempts]
    replies: dict[int, OrderReply] = {}
    by_owner: dict[str, list[int]] = {}
    for position, tried in enumerate(attempts):
        provider = host.find("schedulers", parse_reference(tried.scheduler).name).provider
        by_owner.setdefault(provider.distribution, []).append(position)
    for owner, positions in by_owner.items():
        mine = [attempts[position] for position in positions]
        replies |= dict(zip(positions, _Child(host, owner, problem, mine, seed).replies(), strict=True))
    return [replies[position] for position in range(len(attempts))]


class _Child:
    """The attempts with schedulers of one distribution."""

    def __init__(self, host: Host, owner: str, problem: Problem, attempts: list[Attempt], seed: int) -> None:
        self._index, self._owner, self._problem, self._attempts = host.index(), owner, problem, attempts
        self._plain = OrderErrand(regime=problem.regime.mode, seed=seed)

    def replies(self) -> list[OrderReply]:
        """One for each attempt. Where a process ends early, the attempt that ended it failed; others go on.

        Where processes are left running, each attempt has a child of its own, which shows who has left them.
        """
        found: list[OrderReply] = []
        together = len(self._attempts)
        while left := self._attempts[len(found) :][:together]:
            self._compile(tuple(dict.fromkeys(tried.scheduler for tried in left)))
            began_s = time.monotonic()
            ended = self._run(left)
            try:
                sent = [
                    msgspec.msgpack.decode(message, type=OrderReply) for message in ended.messages[: len(left)]
                ]
            except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
                found.append(OrderReply(ending="failed", reason=f"its process sent what is no reply: {error}"))
                continue
            late = any(reply.ending == "timeout" for reply in sent)
            if ended.left_behind and sent and not late:
                if together > 1:
                    together = 1
                    continue
                reason = f"{ended.left_behind}; a scheduler waits for all that it starts"
                sent = [OrderReply(ending="failed", reason=reason)]
            found += sent
            if len(sent) < len(left):
                waited_s = time.monotonic() - began_s - ended.prepare_s - ended.wall_s
                lost = OrderReply(ending="failed", reason=ended.words)
                found.append(out_of_time() if ended.stopped or waited_s > ORDER_S else lost)
        return found

    def _run(self, attempts: Sequence[Attempt]) -> ChildExit:
        payload = msgspec.msgpack.encode(OrderRequest(problem=self._problem, attempts=tuple(attempts)))
        limit_s = (ORDER_S + LATE_S) * len(attempts)
        return self._errand(self._plain, Handover(payload=lambda _: payload, limit_s=limit_s))

    def _compile(self, names: tuple[str, ...]) -> None:
        """Compile the kernels of schedulers and keep them, by a child that sees no problem.

        Where one of them ends it, each has a child of its own.
        """
        compiled = isolation().compiled
        new = tuple(name for name in names if self._mark(name) not in compiled)
        if not new or self._plays(new) or len(new) == 1:
            return
        for name in new:
            self._plays((name,))

    def _mark(self, name: str) -> bytes:
        """By which it is known that the kernels of a scheduler were compiled."""
        return msgspec.msgpack.encode((self._owner, replace(self._plain, play=(name,))))

    def _plays(self, names: tuple[str, ...]) -> bool:
        """Whether these came to the end of the toy problems, in one child; then their kernels are kept."""
        errand = replace(self._plain, play=names)
        if not self._errand(errand, Handover(payload=lambda _: None, limit_s=0)).prepared:
            return False
        isolation().compiled.update(map(self._mark, names))
        isolation().folders.keep_kernels(self._owner)
        return True

    def _errand(self, given: OrderErrand, handover: Handover) -> ChildExit:
        errand = Errand(
            work=WORK,
            given=msgspec.msgpack.encode(given),
            index=self._index,
            folder=errand_folder(),
            environment=child_environment(),
            memory_bytes=SEARCH_MEMORY_BYTES,
        )
        return isolation().run(errand, PREPARE_S, handover, self._owner)
