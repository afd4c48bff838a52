"""Twelve significant digits: the same figure on every machine, and short files."""


def significant(number: float) -> float:
    """`number` rounded to twelve significant digits."""
    return float(f"{number:.12g}")
