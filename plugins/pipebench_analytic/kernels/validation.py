"""Surfaces from tables of measured kernels, each with its errors on shapes that were held back."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.descent import Floats
from pipebench_analytic.kernels.attention import AttentionTable, fit_attention
from pipebench_analytic.kernels.collectives import CollectiveCurves, CollectiveTable, Operation, fit_collective
from pipebench_analytic.kernels.gemm import LARGE_FLOPS, LARGE_M, Chip, GemmTable, fit_gemm
from pipebench_analytic.kernels.speeds import (
    FitError,
    FittedAttention,
    FittedCollectives,
    FittedGemm,
    Origin,
)

HELD_SHARE = 0.2
LONG_SEQUENCE = 512
LARGE_BYTES = 2**21


def held_back(*keys: Floats) -> NDArray[np.bool_]:
    """Which points are held back: all of a fifth of the shapes, the same each time. keys: what makes a shape."""
    shapes, owner = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
    chosen = np.random.default_rng(0).choice(len(shapes), round(HELD_SHARE * len(shapes)), replace=False)
    return np.isin(owner.reshape(-1), chosen)


def fit_error(predicted: Floats, measured: Floats) -> FitError:
    """Mean relative error, to four digits."""
    error = predicted / measured - 1
    mean, signed = (float(np.round(each.mean(), 4)) for each in (np.abs(error), error))
    return FitError(points=len(error), mean=mean, signed=signed)


def _errors(predicted: Floats, measured: Floats, parts: Mapping[str, NDArray[np.bool_]]) -> dict[str, FitError]:
    return {name: fit_error(predicted[part], measured[part]) for name, part in parts.items() if part.any()}


def fitted_gemm(table: GemmTable, chip: Chip, source: str, *, element_bytes: float = 2) -> FittedGemm:
    """The surface of four fifths of the shapes (n, k), and its errors on the rest."""
    held = held_back(table.n, table.k)
    surface = fit_gemm(table.part(~held), chip, element_bytes=element_bytes)
    rest = table.part(held)
    parts = {
        "all": np.ones(len(rest.m), bool),
        "m >= 512": rest.m >= LARGE_M,
        "over 2e10 FLOP": rest.flops > LARGE_FLOPS,
    }
    what = "one product of m x k by k x n"
    if element_bytes <= 1:
        what += f", with the conversion of the m x k factor to {8 if element_bytes == 1 else 4} bits"
    errors = _errors(surface.seconds(rest.m, rest.n, rest.k), rest.seconds, parts)
    return FittedGemm(
        origin=Origin(what=what, source=source, points=len(table.m), held_back=errors), surface=surface
    )


def fitted_attention(
    table: AttentionTable, chip: Chip, source: str, *, head_half: float | None = None
) -> FittedAttention:
    """The surface of four fifths of the shapes (heads, kv_heads), and its errors on the rest."""
    held = held_back(table.heads, table.kv_heads)
    surface = fit_attention(table.part(~held), chip, head_half=head_half)
    rest = table.part(held)
    parts = {
        "all": np.ones(len(rest.seconds), bool),
        "sequence >= 512": rest.sequence >= LONG_SEQUENCE,
        "over 2e10 FLOP": rest.flops > LARGE_FLOPS,
    }
    found = surface.seconds(rest.batch, rest.sequence, rest.heads, rest.kv_heads, rest.head_size)
    what = f"forward of fused causal attention, 16 bits, head size {_listed(table.head_size)}"
    errors = _errors(found, rest.seconds, parts)
    origin = Origin(what=what, source=source, points=len(table.seconds), held_back=errors)
    return FittedAttention(origin=origin, surface=surface)


def _listed(numbers: Floats) -> str:
    return ", ".join(f"{int(each)}" for each in np.unique(numbers))


def fitted_collectives(tables: Mapping[Operation, CollectiveTable], source: str) -> FittedCollectives:
    """Curves of all calls by operation; errors on a fifth of the sizes by curves of the rest."""
    found, known = [], []
    for operation, table in tables.items():
        held = held_back(table.bytes)
        some = CollectiveTable(table.devices[~held], table.bytes[~held], table.seconds[~held])
        curves = _curves({operation: some})
        for devices in np.unique(table.devices):
            own = held & (table.devices == devices)
            spent = curves.seconds(operation, int(devices), table.bytes[own])
            assert spent is not None
            found.append(np.stack([spent, table.seconds[own], table.bytes[own]]))
        known.append(len(table.seconds))
    predicted, measured, size = np.concatenate(found, axis=1)
    parts = {"all": size > 0, "2 MiB and more": size >= LARGE_BYTES}
    return FittedCollectives(
        origin=Origin(
            what="collectives inside a node, by bytes of the whole buffer",
            source=source,
            points=sum(known),
            held_back=_errors(predicted, measured, parts),
        ),
        curves=_curves(tables),
    )


def _curves(tables: Mapping[Operation, CollectiveTable]) -> CollectiveCurves:
    return CollectiveCurves(**{operation: fit_collective(table) for operation, table in tables.items()})
