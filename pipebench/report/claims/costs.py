"""Under which costs an artefact was measured: profiles, clusters and the model that scores, in words."""

from collections.abc import Callable, Iterable, Sequence

from pipebench.costs.version import MODEL_VERSION
from pipebench.documents.units import readable_bytes
from pipebench.domain.artefact import Cell

MOST_NAMES = 6


def cost_lines(cells: Sequence[Cell]) -> list[str]:
    """A line for each source of costs, then how plans are scored; no line where there are no cells."""
    if not cells:
        return []
    models = [cell for cell in cells if cell.model is not None]
    profiles = [cell for cell in cells if cell.model is None]
    lines = []
    if models:
        profilers = _listed(f"`{cell.profiler}`" for cell in models)
        lines.append(f"models {_listed(str(c.model) for c in models)}, profiled by {profilers}")
    if profiles:
        lines.append(f"profiles {_listed(str(c.profile) for c in profiles)}{_changes(profiles)}")
    lines.append(_platform(cells))
    lines.append(f"plans scored by the suite's own simulation, cost model {MODEL_VERSION}")
    return lines


def _changes(cells: Sequence[Cell]) -> str:
    """What is done to profiles before anyone sees them."""
    sizes = _values(cells, _input_size)
    scaled = f", scaled to inputs of {' and '.join(sizes)} a sample" if sizes else ""
    return scaled + (", operators joined to the layers of a chain" if any(cell.chain for cell in cells) else "")


def _input_size(cell: Cell) -> str | None:
    return None if cell.input_bytes is None else readable_bytes(int(cell.input_bytes))


def _platform(cells: Sequence[Cell]) -> str:
    counts = sorted({cell.devices for cell in cells})
    devices = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    parts = [f"cluster {_listed(cell.cluster for cell in cells)}, {devices} devices"]
    named = (
        ("memory", lambda cell: None if cell.memory is None else str(cell.memory)),
        ("bandwidth", lambda cell: None if cell.bandwidth is None else str(cell.bandwidth)),
        ("optimizer", lambda cell: None if cell.optimizer is None else str(cell.optimizer)),
        ("micro-batch", lambda cell: None if cell.micro_batch is None else str(cell.micro_batch)),
        ("framework", lambda cell: cell.framework),
    )
    for name, of in named:
        values = _values(cells, of)
        if values:
            parts.append(f"{name} {_listed(values)}")
    return ", ".join(parts)


def _values(cells: Iterable[Cell], of: Callable[[Cell], str | None]) -> list[str]:
    return list(dict.fromkeys(value for cell in cells if (value := of(cell)) is not None))


def _listed(names: Iterable[str]) -> str:
    """Distinct names; of many the first ones and how many more there are."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - MOST_NAMES} more" if len(distinct) > MOST_NAMES else ""
    return ", ".join(distinct[:MOST_NAMES]) + more
