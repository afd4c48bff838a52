"""Names of models from those of files, and of operators from the labels in a file, which may repeat."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

FORMATS = (".piper", ".tarnawski", ".layers")


def model_name(source: str) -> str:
    """The name of the file without its ends: bert of a/bert.piper.json."""
    stem = Path(source).stem
    return next((stem.removesuffix(end) for end in FORMATS if stem.endswith(end) and stem != end), stem)


def unique_names(labelled: Sequence[tuple[int, str]]) -> dict[int, str]:
    """A name for each id: its label where it is the only one, else `label#id`; `node<id>` where there is none."""
    labels = [label or f"node{identifier}" for identifier, label in labelled]
    times = Counter(labels)
    taken = {label for label, count in times.items() if count == 1}
    names: dict[int, str] = {}
    for (identifier, _), label in zip(labelled, labels, strict=True):
        name = label
        if times[label] > 1:
            name = f"{label}#{identifier}"
            while name in taken:
                name += "'"
            taken.add(name)
        names[identifier] = name
    return names
