"""The prices that give the best bound: any prices give a proven one, so that a search may stop anywhere."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from pipebench.bounds.choices import COMPUTE, STATE
from pipebench.bounds.shared import PARTS, PRICE_BITS, Prices, Shared

SHARES = (PARTS, PARTS // 2, 0)
INSTANTS = (PARTS // 2, 3 * PARTS // 4, PARTS // 4, PARTS)
"""How much the memory of one instant counts, where memory binds, until one raises nothing."""
LOWEST, HIGHEST = -10.0, 3.0
"""Prices that are tried, as powers of 2 around that at which all memory is worth all time."""
ROUNDS = 8
ENOUGH_GAIN = 1e-3
"""A round that raises the bound by less is the last one."""
CLOSE = 1e-5
"""How near to its limit, relatively, a bound under given prices is brought."""
MOST_RISE = 1000
"""Where memory raises the bound by more, no plan is taken to fit, and nothing is said."""


def raised(shared: Shared, prices: Prices, time_ns: int) -> int:
    """The largest bound found that the prices prove, at least `time_ns`: no plan takes less than it.

    A single cost counts as at most a few times what there is in the time that is tried, so a bound that rises far
    is tried again.
    """
    found = _raised(shared, prices, time_ns)
    while found > 1.5 * time_ns and found > time_ns + 1:
        time_ns, found = found, _raised(shared, prices, found)
    return found


def _raised(shared: Shared, prices: Prices, time_ns: int) -> int:
    """The same in one go. With each ns, what is needed beyond what there is falls by all devices, or faster."""
    over = shared.excess(time_ns, prices)
    if over <= 0:
        return time_ns
    low, high = time_ns, time_ns + int(over / shared.devices) + 1
    at = high - 1
    while high - low > max(1, CLOSE * low):
        here = shared.excess(at, prices)
        if here > 0:
            low, over = at, here
            high = min(high, low + int(over / shared.devices) + 1)
            at = max(low + 1, low + (high - low) // 2)
        else:
            high = at
            share = over / (over - here) if over > here else 0.5
            at = low + max(1, min(high - low - 1, int((high - low) * min(max(share, 0.02), 0.98))))
    return low + 1


def bounds_of(shared: Shared, time_ns: int) -> list[tuple[int, Prices]]:
    """The bounds with all-reduces, then where devices wait with that, then with memory; each with its prices.

    time_ns: a proven bound to start from.
    """
    plain = Prices(PARTS, 0, False)
    found = [(raised(shared, plain, time_ns), plain)]
    if shared.lasting:
        found.append(with_waiting(shared, found[-1][0]))
    return [*found, with_memory(shared, found[-1][1], found[-1][0])]


def work_of(shared: Shared) -> int:
    """The bound of the work alone, to start from."""
    total = int(shared.choices.least(COMPUTE).sum())
    return -(-total // shared.devices) + shared.every_ns


def with_waiting(shared: Shared, time_ns: int) -> tuple[int, Prices]:
    """The bound with the waits of devices at the start and the end, and its prices; without them where they raise
    nothing: they count operators beside the path in two parts, which may be less than both together.
    """
    best = time_ns, Prices(PARTS, 0, False)
    for share in SHARES:
        prices = Prices(share, 0, True)
        found = raised(shared, prices, best[0])
        if found > best[0]:
            best = found, prices
    return best


def with_memory(shared: Shared, prices: Prices, time_ns: int) -> tuple[int, Prices]:
    """The bound with memory, and its prices. prices: those without. `time_ns` where memory raises nothing."""
    state = float(shared.choices.least(STATE).sum())
    if not shared.memory_bytes or state > shared.memory_bytes:
        return time_ns, prices
    best = _with_memory(shared, prices, time_ns)
    if best[0] == time_ns:
        return best
    for instant in INSTANTS:
        found = _with_memory(shared, replace(best[1], instant=instant), best[0])
        if found[0] <= best[0]:
            break
        best = found
    return best


def dearest(shared: Shared, time_ns: int) -> Iterator[Prices]:
    """Prices under which memory is worth ever more than all of the time, for what fits in no time at all."""
    if shared.memory_bytes:
        for power in range(0, 13, 2):
            for instant in (PARTS, PARTS // 2, 0):
                yield _priced(shared, Prices(PARTS, 0, False, instant), time_ns, power)


def _with_memory(shared: Shared, prices: Prices, time_ns: int) -> tuple[int, Prices]:
    """The same for one share of the instant in memory."""
    best, first, at = time_ns, time_ns, (LOWEST + HIGHEST) / 2
    width = (HIGHEST - LOWEST) / 2
    for _ in range(ROUNDS):
        at = _highest(partial(_excess, shared, prices, best), at - width, at + width)
        width = 1.0
        priced = _priced(shared, prices, best, at)
        found = raised(shared, priced, best)
        if found > MOST_RISE * max(first, 1):
            return time_ns, prices
        if found <= best:
            break
        gain, best, prices = found - best, found, priced
        if gain < ENOUGH_GAIN * best:
            break
    return best, prices


def _priced(shared: Shared, prices: Prices, time_ns: int, power: float) -> Prices:
    """The prices with that of a byte so many powers of 2 from where all memory is worth all of the time."""
    even = (time_ns * shared.devices << PRICE_BITS) // shared.memory_bytes
    return replace(prices, byte=max(1, int(even * 2.0**power)))


def _excess(shared: Shared, prices: Prices, time_ns: int, power: float) -> float:
    return shared.excess(time_ns, _priced(shared, prices, time_ns, power))


def _highest(value: Callable[[float], float], low: float, high: float) -> float:
    """Where a concave function is about largest, by golden sections down to 1/4."""
    golden = (5**0.5 - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = value(left), value(right)
    while high - low > 0.5:
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = value(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = value(left)
    return left if at_left >= at_right else right
