"""What each operator and each tensor that crosses its border adds to a stage, at given micro-batch sizes."""

from collections.abc import Sequence

import numpy as np

from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench_graphpipe.measure import Values

Size = tuple[int, tuple[int, ...]]
"""A micro-batch size and the numbers of replicas to choose from."""
FIGURES = 4
"""Columns for each number of replicas: period, saved, inputs, buffers."""


def columns_of(sizes: Sequence[Size]) -> int:
    """Columns of the table in which the program measures these sizes."""
    return 1 + FIGURES * sum(len(replicas) for _, replicas in sizes)


def values_of(model: CostModel, sizes: Sequence[Size], recompute: bool) -> Values:
    """Columns: those of _figures for every size, then parameters."""
    graph = model.graph
    each = [_figures(model, micro_batch, replicas, recompute) for micro_batch, replicas in sizes]
    operators, received, sent = (np.concatenate(tables, axis=1) for tables in zip(*each, strict=True))
    width = operators.shape[1] + 1
    parameters = np.zeros((len(graph.parameters), width), np.int64)
    parameters[:, -1] = [parameter.bytes for parameter in graph.parameters]
    return Values(_wider(operators), parameters, _wider(received), _wider(sent), model.terms(1).workspace_bytes)


def _wider(table: IntArray) -> IntArray:
    return np.pad(table, ((0, 0), (0, 1)))


def _figures(
    model: CostModel, micro_batch: int, replicas: tuple[int, ...], recompute: bool
) -> tuple[IntArray, IntArray, IntArray]:
    """Of operators, of tensors received and sent: period, saved, inputs, buffers, each for every number of
    replicas.
    """
    graph, problem = model.graph, model.problem
    choices = len(replicas)
    width = FIGURES * choices
    operators = np.zeros((len(graph.operators), width), np.int64)
    received = np.zeros((len(graph.tensors), width), np.int64)
    sent = np.zeros((len(graph.tensors), width), np.int64)
    link = problem.cluster.flat(problem.cluster.size)
    whole, message_ns = model.terms(micro_batch), model.formula.message_ns
    for choice, used in enumerate(replicas):
        local = model.terms(-(-micro_batch // used))
        operators[:, choice] = local.forward_ns * (2 if recompute else 1) + local.backward_ns
        operators[:, choices + choice] = local.saved_bytes
        sent[:, choice] = message_ns(link, whole.tensor_bytes, used, used)
        sent[:, choice] += message_ns(link, whole.gradient_bytes, used, used)
        received[:, 2 * choices + choice] = local.tensor_bytes
        for side in (received, sent):
            side[:, 3 * choices + choice] = local.exchanged_bytes
    received[np.array(graph.producers) < 0, 3 * choices :] = 0
    return operators, received, sent
