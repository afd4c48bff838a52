"""Where the code of "package.module:attribute" lies, found without running any of it."""

import zipimport
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

from pipebench.bench.store.code_files import CodeFile, code_file, files_below
from pipebench.domain.errors import PipebenchError


@dataclass(frozen=True, slots=True)
class Package:
    """The code that belongs together under one import name: folders, single files, or one of them."""

    name: str
    folders: tuple[str, ...] = ()
    single: tuple[str, ...] = ()

    def files(self) -> list[CodeFile]:
        """Its files as they are now. Raises PipebenchError when there are none."""
        found = [file for i, folder in enumerate(self.folders) for file in files_below(folder, f"{self.name}{i}/")]
        found += [code_file(Path(path), Path(path).name) for path in self.single]
        if not found:
            raise _none(self.name)
        return found


def package_of(load: str) -> Package:
    """The import package (or the one module) that a component is loaded from.

    That is the top package; of a namespace package, which several distributions share and which holds no code
    itself, the part below it that the name leads to. From a zip, the zip. Raises PipebenchError when there is no
    source to be found.
    """
    return _package(load.partition(":")[0])


@cache
def _package(module: str) -> Package:
    name, rest = "", module.split(".")
    folders: tuple[str, ...] = ()
    while rest:
        name = f"{name}.{rest.pop(0)}" if name else rest.pop(0)
        spec = _spec(name, module)
        loader: object = spec.loader
        if isinstance(loader, zipimport.zipimporter):
            return Package(name, single=(loader.archive,))
        if spec.submodule_search_locations is None:
            return Package(name, single=(_file(spec, module),))
        folders = tuple(spec.submodule_search_locations)
        if spec.origin is not None:
            break
    return Package(name, folders)


def _spec(name: str, module: str) -> ModuleSpec:
    # a package above this one is a namespace: to import it runs nothing
    try:
        spec = find_spec(name)
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is None:
        raise _none(module)
    return spec


def _file(spec: ModuleSpec, module: str) -> str:
    if not spec.has_location or spec.origin is None:
        raise _none(module)
    return spec.origin


def _none(module: str) -> PipebenchError:
    return PipebenchError(
        f"the source of {module!r} cannot be found, so that a store cannot tell when it changes",
        "install it as files, or compare without a store",
    )
