"""References in short: who, where and when."""

import re

_VENUE = re.compile(r"[A-Z][A-Za-z]*(?: [A-Z][A-Za-z]*)* (?:19|20)\d\d")
_YEAR = re.compile(r"(?:19|20)\d\d")
_ARXIV = re.compile(r"arXiv (\d\d)\d\d\.\d{4,5}")


def short_reference(reference: str) -> str:
    """`Jeon et al., ASPLOS 2025` of a reference whose parts stand between commas, authors first.

    Of several references the first. Where no venue is named: the year, or the year of an arXiv number. Empty
    without a reference.
    """
    first = reference.partition(";")[0]
    if not first.strip():
        return ""
    parts = [part.strip() for part in first.split(",")]
    authors = _authors(parts)
    for found in (_whole(_VENUE, parts[1:]), _whole(_YEAR, parts[1:]), _arxiv(first)):
        if found:
            return f"{authors}, {found}"
    return authors


def _authors(parts: list[str]) -> str:
    """The first author, `et al.` where there are more: names are single words, a title has several."""
    lead, year = re.fullmatch(r"(.*?)( (?:19|20)\d\d)?", parts[0], re.DOTALL).groups()  # type: ignore[union-attr]
    several = len(parts) > 1 and " " not in parts[1] and not _YEAR.fullmatch(parts[1])
    more = " et al." if several and not lead.endswith("et al.") else ""
    return f"{lead}{more},{year}" if year else f"{lead}{more}"


def _whole(pattern: re.Pattern[str], parts: list[str]) -> str:
    return next((part for part in parts if pattern.fullmatch(part)), "")


def _arxiv(text: str) -> str:
    found = _ARXIV.search(text)
    return f"20{found[1]}" if found else ""
