"""The model that a profile is made of, or is of: captured where it was captured, else operators of known kinds."""

import torch

from pipebench.costs.shapes.rescale import in_precision
from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Precision
from pipebench.hooks.syntax import parse_reference, typed_options
from pipebench_torch.modules.captured_model import CapturedModel
from pipebench_torch.modules.catalog import source_of
from pipebench_torch.modules.models import DTYPES, StageableModel, SyntheticModel
from pipebench_torch.plugin import ProfilerOptions


def subject(
    graph: OperatorGraph | None,
    name: str,
    precision: Precision,
    options: ProfilerOptions,
    seed: int,
    device: torch.device,
) -> StageableModel:
    """The model to profile: operators of known kinds where there is a graph, else the named module, captured.

    Raises PipebenchError for a module that cannot be captured, UnsupportedProblem for a kind without an
    implementation.
    """
    if graph is not None:
        return SyntheticModel(in_precision(graph, precision), seed, precision)
    model = CapturedModel(source_of(name), options.group, options.depth, DTYPES[precision], seed)
    model.device = device
    return model


def model_of(
    problem: Problem, seed: int, device: torch.device | None = None, captured: str = ""
) -> StageableModel:
    """The model, the same in every process. device: where its constants are made (None: the CPU).

    captured: what modules.names.model_to_build allows; empty: operators of known kinds.
    Raises UnsupportedProblem for a kind without an implementation, PipebenchError when the captured module is
    no longer the one that was profiled.
    """
    graph, origin = problem.profile.graph, problem.profile.provenance
    if not captured:
        return SyntheticModel(graph, seed, problem.regime.precision)
    options = typed_options(parse_reference(origin.profiler), ProfilerOptions)
    where = device or torch.device("cpu")
    model = subject(None, captured, problem.regime.precision, options, seed, where)
    if model.graph != graph:
        raise PipebenchError(f"{captured} is not what it was when it was profiled", "profile it again")
    return model


def for_checking(model: StageableModel) -> StageableModel:
    """The same model in float64, where rounding cannot hide a wrong gradient."""
    if isinstance(model, SyntheticModel):
        return SyntheticModel(model.graph, model.seed, "fp64")
    assert isinstance(model, CapturedModel)
    return model.in_format(torch.float64)
