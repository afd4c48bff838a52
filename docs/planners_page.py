"""The page on planners: each with its paper, what its plans may have, and how it differs from the paper."""

import re
from collections.abc import Iterator

from pipebench.documents.glossary import find_term
from pipebench.hooks.descriptors import Planner
from pipebench.hooks.manager import Host
from pipebench.hooks.references import short_reference

LINKS = (
    (re.compile(r"arXiv (\d{4}\.\d{4,5})"), "https://arxiv.org/abs/{}"),
    (re.compile(r"\b(hal-\d{8})\b"), "https://hal.science/{}"),
    (re.compile(r"OpenReview (\S+)"), "https://openreview.net/forum?id={}"),
    (re.compile(r"\bdoi (10\.\S+)\b"), "https://doi.org/{}"),
)
"""How a reference names a paper that can be read, and its address."""
HOW_TO_READ = """
`pipebench list planners` prints this table for what is installed. `pipebench info NAME` adds options, and
`pipebench info NAME --cite` prints the reference and every deviation from it. What each planner does is told in
[the algorithms and their sources](../explanation/algorithms.md).

- **regimes**: those that it plans for. In the other one its plan is [adapted](glossary.md#adapted).
- **replicas**: `none`: stages have no replicas. `split`: replicas share each micro-batch. `in turn`: replicas
  may also take whole micro-batches in turn. See [replicas](../explanation/cost-model.md#5-replicas).
- **fidelity**: how it relates to its source. See below.
- **deviations**: how many notes say where it differs from its source. The notes follow the table.
"""


def planners(made: str) -> Iterator[str]:
    """A table of the planners that ship, what its words mean, and the deviations of each."""
    shipped = shipped_planners()
    yield f"# Planners\n\n{made}"
    yield HOW_TO_READ
    lines = [
        "| planner | paper | regimes | replicas | graph | fidelity | deviations |",
        "|---|---|---|---|---|---|---|",
    ]
    yield "\n".join([*lines, *map(_line, shipped)])
    yield f"## Fidelity\n\n{find_term('fidelity').text} `-`: a baseline of the suite, made from no paper's text."
    yield "## References and deviations"
    for planner in shipped:
        yield f"### {planner.name}\n\n{_sentence(planner.summary)}"
        if planner.reference:
            yield f"Reference: {linked(planner.reference)}."
        if planner.deviations:
            yield "\n".join(f"- {_sentence(each)}" for each in planner.deviations)


def shipped_planners() -> list[Planner]:
    """The planners of this distribution, by name."""
    listed = Host().slot("planners").values()
    shipped = [each.component for each in listed if each.provider.distribution == "pipebench"]
    return sorted((each for each in shipped if isinstance(each, Planner)), key=lambda each: each.name)


def replicas_of(planner: Planner) -> str:
    """How replicas of its stages work."""
    can = planner.capabilities
    return "in turn" if can.replicas and can.round_robin else "split" if can.replicas else "none"


def _line(planner: Planner) -> str:
    can = planner.capabilities
    noted = f"[{len(planner.deviations)}](#{planner.name})" if planner.deviations else "-"
    parts = (
        f"[`{planner.name}`](components.md#{planner.name})",
        _paper(planner.reference),
        ", ".join(can.regimes),
        replicas_of(planner),
        "chain" if can.graphs == "chain" else "any",
        planner.fidelity or "-",
        noted,
    )
    return "| " + " | ".join(parts) + " |"


def _paper(reference: str) -> str:
    """Authors, venue and year; a link where the first reference has one."""
    first = reference.partition(";")[0]
    short = short_reference(reference)
    found = next((address.format(match[1]) for name, address in LINKS if (match := name.search(first))), "")
    return f"[{short}]({found})" if found else short or "-"


def linked(text: str) -> str:
    """The text with a link at each paper that it names by a number."""
    for name, address in LINKS:
        text = name.sub(lambda match, to=address: f"[{match[0]}]({to.format(match[1])})", text)  # type: ignore[misc]
    return text


def _sentence(text: str) -> str:
    """Marks that Markdown would read are shown as they are; a full stop at the end."""
    plain = re.sub(r"([*_<|\[\]])", r"\\\1", text)
    return plain if plain.endswith(".") else f"{plain}."
