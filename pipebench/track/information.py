"""Wall time and memory: noted when they are far from what they were; nothing fails by them."""

import statistics
from collections.abc import Sequence

from pipebench.domain.units import readable_bytes, readable_seconds
from pipebench.track.night import Night
from pipebench.track.rule import WINDOW

FEWEST = 5
"""Earlier nights without which nothing is noted."""
FAR = {"search_wall_s": 1.5, "search_peak_bytes": 1.1}


def information_notes(nights: Sequence[Night]) -> list[str]:
    """What lies over its median of the last nights of the class by more than noise does. nights: oldest first."""
    if not nights:
        return []
    found = []
    for measured in nights[-1].measured:
        before = [
            each.information
            for night in nights[-1 - WINDOW : -1]
            if (each := night.of(measured.subject)) is not None and each.fingerprint == measured.fingerprint
        ]
        for name, factor in FAR.items():
            known = [figures[name] for figures in before if name in figures]
            value = measured.information.get(name)
            if value is None or len(known) < FEWEST:
                continue
            usual = statistics.median(known)
            if value > factor * usual > 0:
                found.append(f"{measured.subject.label}: {_words(name, value)}, usually {_words(name, usual)}")
    return found


def _words(name: str, value: float) -> str:
    if name.endswith("_bytes"):
        return f"{readable_bytes(round(value))} at its largest"
    return f"{readable_seconds(value)} of wall time"
