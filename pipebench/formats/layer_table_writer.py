"""A profile as a layer table, CSV or JSON."""

import csv
import io
import json
from typing import Any

from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import Profile
from pipebench.formats.carried import lost, outputs, own_parameter_bytes, single
from pipebench.formats.profile_format import Written

_WHAT = "a layer table"
_HEADER = ("name", "kind", "forward_s", "backward_s", "activation_bytes", "weight_bytes", "saved_bytes", "inputs")


def write_csv(profile: Profile) -> Written:
    """The table as CSV. Raises PipebenchError as `_rows`; and for a name with a blank or a semicolon."""
    rows, batch, left_out = _rows(profile)
    text = io.StringIO()
    text.write(f"# micro_batch: {batch}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADER)
    for row in rows:
        for name in row["inputs"]:
            if not name.split() == [name] or ";" in name:
                raise PipebenchError(f"a CSV lists inputs with blanks between them: {name!r}", "write JSON")
        writer.writerow([" ".join(row[key]) if key == "inputs" else row[key] for key in _HEADER])
    return Written(text.getvalue().encode(), left_out)


def write_json(profile: Profile) -> Written:
    """The table as JSON. Raises PipebenchError as `_rows`."""
    rows, batch, left_out = _rows(profile)
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
    return Written(f'{{"micro_batch": {batch}, "layers": [\n{lines}\n]}}\n'.encode(), left_out)


def _rows(profile: Profile) -> tuple[list[dict[str, Any]], int, tuple[str, ...]]:
    """One row for each operator. Raises PipebenchError: several device types or sizes, several outputs of an
    operator, a shared parameter.
    """
    costs, batch = single(profile, _WHAT)
    made, weights = outputs(profile, _WHAT), own_parameter_bytes(profile, _WHAT)
    graph = profile.graph
    maker = {tensor.name: tensor.producer for tensor in graph.tensors}
    rows: list[dict[str, Any]] = [
        {
            "name": operator.name,
            "kind": operator.kind,
            "forward_s": each.forward_s[0],
            "backward_s": each.backward_s[0],
            "activation_bytes": tensor.forward_bytes_per_sample * batch if tensor else 0.0,
            "weight_bytes": held,
            "saved_bytes": each.saved_bytes_per_sample * batch,
            "inputs": [name for tensor_name in operator.inputs if (name := maker[tensor_name]) is not None],
        }
        for operator, each, tensor, held in zip(graph.operators, costs.operators, made, weights, strict=True)
    ]
    left_out = lost(profile, costs)
    if any(producer < 0 for producer in graph.producers):
        left_out.append("inputs of the model")
    if any(
        t.producer is not None and t.gradient_bytes_per_sample != t.forward_bytes_per_sample for t in graph.tensors
    ):
        left_out.append("sizes of gradients that differ from those of their tensors")
    return rows, batch, tuple(left_out)
