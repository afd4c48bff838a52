"""What a Python file mentions: modules that it imports, and texts that may name other components."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from pipebench.bench.store.code_files import CodeFile, content

LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Mentions:
    """Top names of the modules imported, and short texts in the code."""

    imports: frozenset[str]
    texts: frozenset[str]


NOTHING = Mentions(frozenset(), frozenset())
_known: dict[tuple[str, tuple[int, int, int]], Mentions] = {}


def mentions(files: Iterable[CodeFile]) -> Mentions:
    """What the files mention together. A file that is no Python mentions nothing."""
    each = [_mentioned(file) for file in files]
    return Mentions(
        frozenset().union(*(found.imports for found in each)), frozenset().union(*(found.texts for found in each))
    )


def _mentioned(file: CodeFile) -> Mentions:
    key = file.path, file.stamp
    if key not in _known:
        _known[key] = _parse(file) if file.path.endswith(".py") else NOTHING
    return _known[key]


def _parse(file: CodeFile) -> Mentions:
    try:
        tree = ast.parse(content(file.path))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return NOTHING
    imports: set[str] = set()
    texts: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imports.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= LONGEST_NAME:
            texts.add(node.value)
    return Mentions(frozenset(imports), frozenset(texts))
