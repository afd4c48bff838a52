"""Make the profiles that ship again, from profiles/manifest.toml: `python -m tests.profiles.regenerate`."""

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from pipebench.documents.document import encode
from pipebench.domain.profile import Precision, Profile
from pipebench.domain.value import Value
from pipebench.formats.devices import load_device
from pipebench.formats.files import write_file
from pipebench.formats.typed_text import parse_toml
from pipebench.hooks.context import Context, ProfileRequest
from pipebench.hooks.descriptors import Component
from pipebench.hooks.syntax import parse_reference, typed_options

FOLDER = Path(__file__).resolve().parents[2] / "profiles"
PLUGINS = {"models": "pipebench_models.plugin", "profilers": "pipebench_analytic.plugin"}


class Recipe(Value, frozen=True, kw_only=True):
    """How one profile is made; model and profiler as on the command line.

    lean: written without what every reader can do without, to keep the file small: fields that have their default
    value, and the axes of operators, which only splits of tensors need.
    """

    purpose: str
    model: str
    profiler: str
    devices: tuple[str, ...]
    micro_batches: tuple[int, ...]
    precision: Precision = "fp32"
    lean: bool = False


class Manifest(Value, frozen=True, kw_only=True):
    """profiles/manifest.toml."""

    profiles: dict[str, Recipe]


def documents() -> Iterator[tuple[Path, bytes]]:
    """Every profile's path and what the file must hold."""
    file = FOLDER / "manifest.toml"
    for name, recipe in parse_toml(file.read_bytes(), Manifest, file.name).profiles.items():
        yield FOLDER / f"{name}.json", _document(name, recipe)


def _document(name: str, recipe: Recipe) -> bytes:
    build, options = _component("models", recipe.model)
    graph = build(Context(options=options))
    profile, options = _component("profilers", recipe.profiler)
    request = ProfileRequest(
        devices=tuple(map(load_device, recipe.devices)),
        micro_batches=recipe.micro_batches,
        precision=recipe.precision,
    )
    made = profile(graph, Context(options=options, request=request))
    notes = (f"model {recipe.model}", *made.provenance.notes)
    made = replace(made, name=name, provenance=replace(made.provenance, notes=notes))
    return encode("profile", _lean(made) if recipe.lean else made) + b"\n"


def _lean(made: Profile) -> Any:
    notes = (*made.provenance.notes, "axes of operators are left out")
    operators = tuple(replace(operator, axes={}) for operator in made.graph.operators)
    made = replace(
        made,
        graph=replace(made.graph, operators=operators),
        provenance=replace(made.provenance, notes=notes),
    )
    return _without_defaults(made)


def _without_defaults(value: Any) -> Any:
    """Plain data that reads as the same value."""
    if isinstance(value, Value):
        fields = {info.name: (getattr(value, info.name), _default(info)) for info in msgspec.structs.fields(value)}
        return {name: _without_defaults(held) for name, (held, default) in fields.items() if held != default}
    return [_without_defaults(each) for each in value] if isinstance(value, tuple) else value


def _default(info: msgspec.structs.FieldInfo) -> Any:
    return info.default if info.default_factory is msgspec.NODEFAULT else info.default_factory()


def _component(slot: str, text: str) -> tuple[Callable[..., Any], Value]:
    """What a component of the project's own plugins loads, and its options."""
    reference = parse_reference(text)
    offered: tuple[Component, ...] = getattr(import_module(PLUGINS[slot]), f"pipebench_{slot}")()
    component = next(component for component in offered if component.name == reference.name)
    module, _, attribute = component.load.partition(":")
    return getattr(import_module(module), attribute), typed_options(reference, component.options)


if __name__ == "__main__":
    for path, data in documents():
        write_file(path, data)
        print(f"{path.name}: {len(data)} bytes")
