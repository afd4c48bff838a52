"""Cuts into equal numbers of layers."""


def equal_cuts(items: int, parts: int) -> tuple[int, ...]:
    """parts + 1 bounds 0 … items; parts differ in size by at most one. Needs 1 <= parts <= items."""
    return tuple(part * items // parts for part in range(parts + 1))
