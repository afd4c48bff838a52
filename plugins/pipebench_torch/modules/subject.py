"""The model that a profile is made of."""

import torch

from pipebench.costs.precision import in_precision
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import Precision
from pipebench_torch.modules.captured import CapturedModel
from pipebench_torch.modules.catalog import source_of
from pipebench_torch.modules.models import DTYPES, Model, SyntheticModel
from pipebench_torch.plugin import ProfilerOptions


def subject(
    graph: OperatorGraph | None,
    name: str,
    precision: Precision,
    options: ProfilerOptions,
    seed: int,
    device: torch.device,
) -> Model:
    """Operators of known kinds where there is a graph, else the module of this name, captured.

    Raises PipebenchError for a module that cannot be captured, UnsupportedProblem for a kind without an
    implementation.
    """
    if graph is not None:
        return SyntheticModel(in_precision(graph, precision), seed, precision)
    model = CapturedModel(source_of(name), options.group, options.depth, DTYPES[precision], seed)
    model.device = device
    return model
