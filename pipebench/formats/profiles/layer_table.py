"""A table of layers, CSV or JSON, as a profile, and a profile as such a table."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import UNSET

from pipebench.domain.errors import InvalidValue, PipebenchError, nearest
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.limits import MOST_COUNT
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile, Provenance, Setting
from pipebench.domain.value import Value, require, require_count, short
from pipebench.formats.json_forms import json_form
from pipebench.formats.profiles.format import (
    ProfileFormat,
    ProfileText,
    losses,
    model_name,
    outputs,
    own_parameter_bytes,
    single,
)
from pipebench.formats.profiles.layer_rows import Layer, LayerRows, parse_csv, parse_json_table


class TableOptions(Value, frozen=True, kw_only=True):
    """micro_batch: samples that the figures are for (default: what the file says, else 1). device: the device type
    to file the costs under.
    """

    micro_batch: int | None = None
    device: str = "profiled-gpu"

    def __post_init__(self) -> None:
        if self.micro_batch is not None:
            require_count("micro_batch", self.micro_batch)
        require(self.device != "", "device is empty")


def read_csv(data: bytes, source: str, options: Any) -> Profile:
    """The profile in a CSV. options: TableOptions. Raises PipebenchError with file and line."""
    return _profile(parse_csv(data, source), source, cast(TableOptions, options))


def read_json(data: bytes, source: str, options: Any) -> Profile:
    """The profile in a JSON table. options: TableOptions. Raises PipebenchError with the place in the file."""
    return _profile(parse_json_table(data, source), source, cast(TableOptions, options))


def _profile(table: LayerRows, source: str, options: TableOptions) -> Profile:
    layers = table.layers
    if not layers:
        raise PipebenchError(f"{source}: no layers")
    batch = options.micro_batch or table.micro_batch or 1
    if table.micro_batch is not None and not 1 <= table.micro_batch <= MOST_COUNT:
        raise PipebenchError(
            f"{source}: micro_batch is {short(table.micro_batch)}, it must be from 1 to {MOST_COUNT}"
        )
    inputs = _inputs(layers)
    size = {layer.name: layer.figures["activation"] / batch for layer in layers}
    try:
        graph = OperatorGraph(
            name=model_name(source),
            operators=tuple(
                Operator(
                    name=layer.name,
                    kind=layer.kind,
                    inputs=tuple(f"{name}.out" for name in read),
                    parameters=(f"{layer.name}.parameters",) if layer.figures["weight"] else (),
                )
                for layer, read in zip(layers, inputs, strict=True)
            ),
            tensors=tuple(
                Tensor(
                    name=f"{layer.name}.out",
                    producer=layer.name,
                    forward_bytes_per_sample=size[layer.name],
                    gradient_bytes_per_sample=size[layer.name],
                )
                for layer in layers
            ),
            parameters=tuple(
                Parameter(name=f"{layer.name}.parameters", bytes=round(layer.figures["weight"]))
                for layer in layers
                if layer.figures["weight"]
            ),
        )
        costs = tuple(
            OperatorCosts(
                operator=layer.name,
                forward_s=(layer.figures["forward"],),
                backward_s=(layer.figures["backward"],),
                saved_bytes_per_sample=(
                    layer.figures["saved"] / batch
                    if "saved" in layer.figures
                    else sum(size[name] for name in read)
                ),
            )
            for layer, read in zip(layers, inputs, strict=True)
        )
        return Profile(
            name=graph.name,
            graph=graph,
            costs=(DeviceCosts(device_type=options.device, micro_batches=(batch,), operators=costs),),
            provenance=_provenance(
                source, layers, batch, table.micro_batch or options.micro_batch, options.device
            ),
        )
    except InvalidValue as error:
        raise PipebenchError(f"{source}: {error}") from None


def _inputs(layers: Sequence[Layer]) -> list[list[str]]:
    """What each layer reads. Raises PipebenchError for a name twice or one that is no layer."""
    first: dict[str, str] = {}
    for layer in layers:
        if not layer.name:
            raise PipebenchError(f"{layer.where}: name is empty")
        if layer.name in first:
            raise PipebenchError(f"{layer.where}: layer {layer.name!r} occurs twice")
        first[layer.name] = layer.where
    told = any(layer.inputs is not None for layer in layers)
    read: list[list[str]] = []
    for position, layer in enumerate(layers):
        names = layer.inputs or []
        if not told:
            names = [layers[position - 1].name] if position else []
        for name in names:
            if name not in first:
                raise PipebenchError(
                    f"{layer.where}: {layer.name!r} reads {name!r}, which is not a layer", nearest(name, first)
                )
        read.append(list(dict.fromkeys(names)))
    return read


def _provenance(source: str, layers: Sequence[Layer], batch: int, told: int | None, device: str) -> Provenance:
    notes = [f"figures are of a micro-batch of {batch} samples" + ("" if told else ": nothing says how many")]
    saved = any("saved" in layer.figures for layer in layers)
    return Provenance(
        setting=UNSET if told else Setting(),  # with one its notes are told: this is a guess
        profiler="layer table",
        made_by=Path(source).name,
        device=device,
        saved="as the table says" if saved else "inputs: every layer keeps what it reads",
        notes=tuple(notes),
    )


def looks_like_csv(data: bytes) -> bool:
    """Whether the first line that is no comment is a header with a name and a time."""
    for line in data[:4096].splitlines():
        if line.strip() and not line.lstrip().startswith(b"#"):
            heading = line.lower()
            return b"name" in heading and (b"forward" in heading or b"fwd" in heading) and b" -- " not in heading
    return False


def looks_like_json_table(data: bytes) -> bool:
    """Whether it is a list, or an object with layers, and no document of this project."""
    return json_form(data) == "layers"


CSV = ProfileFormat(
    name="layers-csv",
    summary="table of layers, units in the header",
    suffix=".csv",
    options=TableOptions,
    recognises=looks_like_csv,
    read=read_csv,
)
JSON = ProfileFormat(
    name="layers-json",
    summary="table of layers as JSON, units in the names of the fields",
    suffix=".layers.json",
    options=TableOptions,
    recognises=looks_like_json_table,
    read=read_json,
)


_WHAT = "a layer table"
_HEADER = ("name", "kind", "forward_s", "backward_s", "activation_bytes", "weight_bytes", "saved_bytes", "inputs")


def write_csv(profile: Profile) -> ProfileText:
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
    return ProfileText(text.getvalue().encode(), left_out)


def write_json(profile: Profile) -> ProfileText:
    """The table as JSON. Raises PipebenchError as `_rows`."""
    rows, batch, left_out = _rows(profile)
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
    return ProfileText(f'{{"micro_batch": {batch}, "layers": [\n{lines}\n]}}\n'.encode(), left_out)


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
    left_out = losses(profile, costs)
    if any(producer < 0 for producer in graph.producers):
        left_out.append("inputs of the model")
    if any(
        t.producer is not None and t.gradient_bytes_per_sample != t.forward_bytes_per_sample for t in graph.tensors
    ):
        left_out.append("sizes of gradients that differ from those of their tensors")
    return rows, batch, tuple(left_out)
