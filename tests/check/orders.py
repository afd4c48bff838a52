"""Orders of tasks written by hand, for tests of the judge; shares nothing with the project's schedulers."""

from collections.abc import Sequence

from pipebench.domain.plan import Plan
from pipebench.domain.schedule import FiniteSchedule, Lane


def lane(devices: Sequence[int], tasks: str) -> Lane:
    """A lane from words like `F0.2`: kind, stage, micro-batch. `F0.2 +B1.0` run at the same time."""
    words = [word.lstrip("+") for word in tasks.split()]
    places = [word[1:].split(".") for word in words]
    return Lane(
        devices=tuple(devices),
        stage=tuple(int(stage) for stage, _ in places),
        micro_batch=tuple(int(micro_batch) for _, micro_batch in places),
        kinds="".join(word[0] for word in words),
        together=tuple(i - 1 for i, word in enumerate(tasks.split()) if word[0] == "+"),
    )


def finite(plan: Plan, orders: Sequence[str]) -> FiniteSchedule:
    """One lane for each stage. orders: words like `F2` (kind, micro-batch)."""
    return FiniteSchedule(
        lanes=tuple(
            lane(stage.devices, " ".join(f"{word[0]}{position}.{word[1:]}" for word in order.split()))
            for position, (stage, order) in enumerate(zip(plan.stages, orders, strict=True))
        )
    )


def words(kind: str, micro_batches: range) -> str:
    """`F0 F1 …`."""
    return " ".join(f"{kind}{m}" for m in micro_batches)


def gpipe(count: int) -> str:
    """All forwards, then all backwards."""
    return f"{words('F', range(count))} {words('B', range(count))}"


def one_f_one_b(count: int, warm_up: int) -> str:
    """`warm_up` forwards, then one backward and one forward in turn."""
    warm_up = min(warm_up, count)
    steady = " ".join(f"B{m} F{m + warm_up}" for m in range(count - warm_up))
    return f"{words('F', range(warm_up))} {steady} {words('B', range(count - warm_up, count))}"
