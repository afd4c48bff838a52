"""A complete package with a plugin that works, from templates that ship with pipebench."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

import pipebench
from pipebench.defaults import EXAMPLE_CUTS, EXAMPLE_MODEL, scheduler_for
from pipebench.domain.errors import PipebenchError, unknown
from pipebench.formats.files import write_file
from pipebench.formats.profiles.files import FORMATS
from pipebench.hooks import API_VERSION
from pipebench.hooks.descriptors import SLOTS as DESCRIPTORS

SLOTS = tuple(slot.removesuffix("s") for slot in DESCRIPTORS)
TEMPLATES = "templates"
SUFFIX = ".tmpl"
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LONGEST_NAME = 40
RESERVED = {"pipebench": "the suite itself", "best": "what `pipebench plan best` calls the best of all planners"}
"""Names that mean something else. Words of Python are fine: nothing in a package is called by the bare name."""


@dataclass(frozen=True, slots=True)
class PackageTemplate:
    """A package to be written: files by path inside its folder."""

    folder: Path
    name: str
    module: str
    contents: dict[str, bytes]


def new_package(name: str, slot: str, folder: Path, taken: Iterable[str] = ()) -> PackageTemplate:
    """The package; nothing is written yet. taken: names of components that there are in the slot.

    Raises PipebenchError: a slot that a package cannot be made for, a name that is no name, taken, or shadows a
    module; a folder that exists.
    """
    if slot not in SLOTS:
        raise unknown("slot", slot, SLOTS)
    module = _module_name(name, set(taken), slot)
    target = folder / name
    if target.exists() or target.is_symlink():
        raise PipebenchError(f"{str(target)!r} exists already", "choose another name, or remove it")
    words = {
        "name": name,
        "component": component_name(name, slot),
        "module": module,
        "slot": slot,
        "version": pipebench.__version__,
        "next": _next_minor(pipebench.__version__),
        "api": str(API_VERSION),
        "scheduler": scheduler_for("sync"),
        "equal": EXAMPLE_CUTS[0],
        "balanced": EXAMPLE_CUTS[1],
        "network": EXAMPLE_MODEL,
        "Title": "".join(word.capitalize() for word in name.split("-")),
    }
    root = files("pipebench.testing") / TEMPLATES
    contents = {**_fill_templates(root / "common", "", words), **_fill_templates(root / slot, "", words)}
    return PackageTemplate(target, name, module, contents)


def component_name(name: str, slot: str) -> str:
    """The component of a new package: of its name, but an artefact is one figure of those that it may get."""
    return f"{name}/fig1" if slot == "artefact" else name


def write_package(package: PackageTemplate) -> list[str]:
    """Write all files; their paths, sorted. Raises PipebenchError when one cannot be written."""
    try:
        package.folder.mkdir(parents=True)
    except OSError as error:
        raise PipebenchError(
            f"cannot make {str(package.folder)!r}: {(error.strerror or str(error)).lower()}"
        ) from None
    for path, data in package.contents.items():
        write_file(package.folder / path, data)
    return sorted(package.contents)


def _module_name(name: str, taken: set[str], slot: str) -> str:
    """The name of the import package. Raises PipebenchError with a name that would do."""
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise PipebenchError(
            f"{name!r} is not a usable name: lower-case letters, digits and single hyphens, a letter first, "
            f"at most {LONGEST_NAME}",
            f"such as {_nearest_valid(name)!r}",
        )
    if component_name(name, slot) in taken:
        raise PipebenchError(f"there is a {slot} {component_name(name, slot)!r} already", f"such as 'my-{name}'")
    if name in RESERVED:
        raise PipebenchError(f"{name!r} is {RESERVED[name]}", f"such as 'my-{name}'")
    if slot == "format" and (reader := _reader_of(f".{name}")) is not None:
        raise PipebenchError(f"files that end in .{name} are read as {reader} already", f"such as 'my-{name}'")
    module = f"pipebench_{name.replace('-', '_')}"
    if find_spec(module) is not None:
        raise PipebenchError(f"a package {module!r} is installed already", f"such as 'my-{name}'")
    return module


def _reader_of(suffix: str) -> str | None:
    """The built-in format that reads files with this end."""
    return next((each.name for each in FORMATS if each.suffix.endswith(suffix)), None)


def _nearest_valid(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-").lstrip("0123456789-")[:LONGEST_NAME].strip("-")
    return plain or "mine"


def _next_minor(version: str) -> str:
    major, minor, *_ = version.split(".")
    return f"{major}.{int(minor) + 1}"


def _fill_templates(source: Traversable, prefix: str, words: dict[str, str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for entry in source.iterdir():
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            found |= _fill_templates(entry, f"{path}/", words)
        elif entry.name.endswith(SUFFIX):
            named = _substitute(path.removesuffix(SUFFIX), words)
            found[named] = _substitute(entry.read_text(encoding="utf-8"), words).encode()
    return found


def _substitute(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(f"@@{word}@@", value)
    return text
