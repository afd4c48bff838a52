"""Make the profiles that ship again, from profiles/manifest.toml: `python -m tests.profiles.regenerate`."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pipebench.domain.document import encode
from pipebench.domain.profile import Precision
from pipebench.domain.value import Value
from pipebench.formats.devices import load_device
from pipebench.formats.files import write_file
from pipebench.formats.strict import parse_toml
from pipebench.hooks.context import Context, ProfileRequest
from pipebench.hooks.descriptors import Component
from pipebench.hooks.syntax import parse_reference, typed_options

FOLDER = Path(__file__).resolve().parents[2] / "profiles"
PLUGINS = {"models": "pipebench_models.plugin", "profilers": "pipebench_analytic.plugin"}


class Recipe(Value, frozen=True, kw_only=True):
    """How one profile is made; model and profiler as on the command line."""

    purpose: str
    model: str
    profiler: str
    devices: tuple[str, ...]
    micro_batches: tuple[int, ...]
    precision: Precision = "fp32"


class Manifest(Value, frozen=True, kw_only=True):
    """profiles/manifest.toml."""

    profiles: dict[str, Recipe]


def documents() -> Iterator[tuple[Path, bytes]]:
    """Every profile's path and what the file must hold."""
    file = FOLDER / "manifest.toml"
    for name, recipe in parse_toml(file.read_bytes(), Manifest, file.name).profiles.items():
        yield FOLDER / f"{name}.json", _document(name, recipe)


def _document(name: str, recipe: Recipe) -> bytes:
    request = ProfileRequest(
        devices=tuple(map(load_device, recipe.devices)),
        micro_batches=recipe.micro_batches,
        precision=recipe.precision,
    )
    graph = _call("models", recipe.model)(None)
    profile = _call("profilers", recipe.profiler, graph)(request)
    return encode("profile", replace(profile, name=name)) + b"\n"


def _call(slot: str, text: str, *arguments: Any) -> Any:
    """A component of the project's own plugins, waiting for its request."""
    reference = parse_reference(text)
    offered: tuple[Component, ...] = getattr(import_module(PLUGINS[slot]), f"pipebench_{slot}")()
    component = next(component for component in offered if component.name == reference.name)
    module, _, attribute = component.load.partition(":")
    work = getattr(import_module(module), attribute)
    options = typed_options(reference, component.options)
    return lambda request: work(*arguments, Context(options=options, request=request))


if __name__ == "__main__":
    for path, data in documents():
        write_file(path, data)
        print(f"{path.name}: {len(data)} bytes")
