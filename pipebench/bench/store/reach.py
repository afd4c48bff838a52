"""The code on which a component's result depends: the modules that it imports, of its package and of the host."""

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pipebench
from pipebench.bench.store.code_files import CodeFile, CodePackage, code_file, content, package_of
from pipebench.bench.store.python_code import EMPTY, HOST, Definition, ImportedName, PythonCode, plain, python_code
from pipebench.domain.errors import PipebenchError

KERNELS = ("pipebench.algorithms",)
"""Packages of the host that count by their code. The rest of it counts by costs.version.MODEL_VERSION."""
LONGEST_CHAIN = 8
"""How often a name is followed from the module that imports it to the one that defines it."""


@dataclass(frozen=True, slots=True)
class Code:
    """The code behind a component.

    digest: SHA-256 in hex. Renaming files or modules, moving functions between them, and editing comments,
    docstrings or formatting leave it unchanged.
    imports: top names of other packages that it imports.
    files: the files that were read.
    """

    digest: str
    imports: frozenset[str]
    files: tuple[CodeFile, ...]


@dataclass(frozen=True, slots=True)
class _Root:
    """The folders that hold the modules below a name; or the file of the single module of that name.

    name: "" for any module but those of the host, as beside a script.
    """

    name: str
    folders: tuple[str, ...] = ()
    file: str = ""

    def find(self, module: str) -> str | None:
        """The file of a module, None where there is none."""
        if self.file:
            return self.file if module == self.name else None
        if self.name:
            if module != self.name and not module.startswith(f"{self.name}."):
                return None
        elif module.partition(".")[0] == HOST:
            return None
        below = module.removeprefix(self.name).strip(".").replace(".", os.sep)
        for folder in self.folders:
            base = os.path.join(folder, below) if below else folder
            for path in (os.path.join(base, "__init__.py"), f"{base}.py"):
                if os.path.isfile(path):
                    return path
        return None


_codes: dict[str, tuple[tuple[int, int, int], PythonCode]] = {}
_reached: dict[str, tuple[tuple[CodeFile, ...], Code]] = {}


def component_code(load: str) -> Code:
    """The code of "package.module:attribute": what it mentions in its package and in kernels of the host.

    Names are followed at any depth, imports read off the source, in functions too. Of a module that is reached,
    those definitions count that are mentioned on the way from the attribute, and what runs when the module is
    loaded: two planners of one module have each their own code.

    All of the package counts where a module of it imports by a computed name, or where `load` leads to no file;
    what was compiled counts always. Raises PipebenchError when there is no source to be found.
    """
    package = package_of(load)
    everything = package.files()
    compiled = [file for file in everything if not file.path.endswith(".py")]
    known = _remembered_code(load, compiled)
    if known is not None:
        return known
    root = _root(package)
    first = root.find(load.partition(":")[0]) if root else None
    reached = _ModuleWalk([root, *_kernel_roots()] if root else [])
    for file in compiled:
        reached.take("", file.path)
    for path in [first] if first else [file.path for file in everything]:
        reached.start(load.partition(":")[0] if first else package.name, path)
    if reached.dynamic_below(package.name):
        for file in everything:
            reached.start(package.name, file.path)
    elif first:
        reached.entry = first, load.partition(":")[2].partition(".")[0]
    return _remember(load, reached, compiled)


def script_code(path: str) -> Code:
    """The code of a planner's file: modules beside it and kernels of the host that it reaches.

    Raises PipebenchError when the file cannot be read.
    """
    code_file(Path(path), "")
    known = _remembered_code(path, [])
    if known is not None:
        return known
    reached = _ModuleWalk([*_kernel_roots(), _Root("", (str(Path(path).parent),))])
    reached.start("", path)
    return _remember(path, reached, [])


def program_code(files: Iterable[CodeFile]) -> Code:
    """The files of a command, in their order: Python without comments and docstrings, others as they are."""
    taken = tuple(files)
    digests = [_whole(_code_of(file)) for file in taken]
    return Code(hashlib.sha256(b"".join(digests)).hexdigest(), frozenset(), taken)


class _ModuleWalk:
    """Modules that were followed.

    entry: the file and name from which definitions are followed; None: all of them count. programs: files that run
    as a program of their own (`python -m`), of which all counts.
    """

    def __init__(self, roots: list[_Root]) -> None:
        self.roots = roots
        self.files: dict[str, tuple[str, CodeFile]] = {}
        self.outside: set[str] = set()
        self.entry: tuple[str, str] | None = None
        self.programs: set[str] = set()

    def start(self, module: str, path: str) -> None:
        """Take in a file and all that it imports."""
        waiting = deque([(module, path)])
        while waiting:
            module, path = waiting.popleft()
            if path in self.files:
                continue
            code = self.take(module, path)
            for name in self._packages_above(module):
                waiting.extend(self._locate(name))
            for each in sorted(code.imports):
                waiting.extend(self._modules_of_import(module, path, each))
            for text in sorted(code.texts):  # as in `python -m package.module`
                if not text.startswith(f"{HOST}."):
                    programs = self._locate(text)
                    self.programs |= {file for _, file in programs}
                    waiting.extend(programs)

    def take(self, module: str, path: str) -> PythonCode:
        """Take in one file alone."""
        file = code_file(Path(path), "")
        self.files[path] = (module, file)
        return _code_of(file)

    def dynamic_below(self, package: str) -> bool:
        """Whether a module of the package imports by a computed name."""
        return any(
            _code_of(file).dynamic
            for module, file in self.files.values()
            if module == package or module.startswith(f"{package}.")
        )

    def digest(self) -> str:
        """Over every definition with what it mentions, wherever it is, and all other statements by module."""
        mentioned = self._mentions()
        parts = {
            self._definition_digest(module, path, code, definition)
            for path, (module, file) in self.files.items()
            for code in (_code_of(file),)
            for definition in (*(code.definitions[name] for name in mentioned[path]), code.rest)
            if definition.digest != EMPTY
        }
        return hashlib.sha256(b"".join(sorted(parts))).hexdigest()

    def _mentions(self) -> dict[str, set[str]]:
        """By file the definitions that are mentioned from the entry on, and from what runs when a module loads."""
        codes = {path: _code_of(file) for path, (_, file) in self.files.items()}
        names: dict[str, set[str]] = {path: set() for path in codes}
        if self.entry is None or not self._known_in(codes[self.entry[0]], self.entry[1]):
            return {path: set(code.definitions) for path, code in codes.items()}
        waiting = deque([self.entry])
        for path, code in codes.items():
            waiting.extend((path, name) for name in code.rest.names)
            if path in self.programs:
                waiting.extend((path, name) for name in code.definitions)
        seen: set[tuple[str, str]] = set()
        while waiting:
            path, name = waiting.popleft()
            if (path, name) in seen:
                continue
            seen.add((path, name))
            code = codes[path]
            if name in code.definitions:
                names[path].add(name)
                waiting.extend((path, each) for each in code.definitions[name].names)
            for each in code.bound.get(name, ()):
                waiting.extend(self._definitions_named(path, each, codes))
        return names

    def _definitions_named(
        self, path: str, what: ImportedName, codes: Mapping[str, PythonCode]
    ) -> Iterator[tuple[str, str]]:
        """The definitions that an imported name may stand for; all of a module that is imported itself."""
        target = _absolute(self.files[path][0], path, what)
        source = self._path(target.module)
        if source is not None and source in codes and target.name and self._known_in(codes[source], target.name):
            yield source, target.name
            return
        below = f"{target.module}.{target.name}" if target.name else target.module
        for _, module in self._locate(below):
            if module in codes:
                yield from ((module, name) for name in (*codes[module].definitions, *codes[module].bound))

    @staticmethod
    def _known_in(code: PythonCode, name: str) -> bool:
        return name in code.definitions or name in code.bound

    def _definition_digest(self, module: str, path: str, code: PythonCode, definition: Definition) -> bytes:
        whole = hashlib.sha256(definition.digest)
        for name in sorted(definition.names & (code.definitions.keys() | code.bound.keys())):
            for meaning in sorted(self._meanings(module, path, code, name, 0)):
                whole.update(name.encode(errors="surrogatepass") + b"\0" + meaning)
        return whole.digest()

    def _meanings(self, module: str, path: str, code: PythonCode, name: str, depth: int) -> set[bytes]:
        """The digests of what a name of a module stands for: of its definition, or of the place from which it
        comes.
        """
        if name in code.definitions:
            return {code.definitions[name].digest}
        meanings: set[bytes] = set()
        for each in code.bound.get(name, ()):
            target = _absolute(module, path, each)
            source = self._path(target.module)
            if source is not None and each.name and depth < LONGEST_CHAIN:
                there = self.files.get(source)
                if there is not None:
                    meanings |= self._meanings(there[0], source, _code_of(there[1]), each.name, depth + 1)
            elif source is None and target.module.partition(".")[0] == HOST:
                meanings.add(target.name.encode(errors="surrogatepass"))
            elif source is None:
                meanings.add(f"{target.module}:{target.name}".encode(errors="surrogatepass"))
        return meanings

    def _modules_of_import(self, module: str, path: str, what: ImportedName) -> Iterator[tuple[str, str]]:
        target = _absolute(module, path, what)
        below = f"{target.module}.{target.name}" if target.name else ""
        found = [*self._locate(target.module), *self._locate(below)]
        if target.name and found:
            found += [each for name in self._packages_above(target.module) for each in self._locate(name)]
        top = target.module.partition(".")[0]
        if not found and top and top != HOST:
            self.outside.add(top)
        yield from found

    def _locate(self, module: str) -> list[tuple[str, str]]:
        path = self._path(module) if module else None
        return [] if path is None else [(module, path)]

    def _path(self, module: str) -> str | None:
        return next((path for root in self.roots if (path := root.find(module)) is not None), None)

    @staticmethod
    def _packages_above(module: str) -> list[str]:
        """Packages whose __init__ runs before the module."""
        parts = module.split(".")[:-1]
        return [".".join(parts[: count + 1]) for count in range(len(parts))]


def _absolute(module: str, path: str, what: ImportedName) -> ImportedName:
    if not what.level:
        return what
    parts = module.split(".")
    above = what.level - (os.path.basename(path) == "__init__.py")
    base = ".".join(parts[: len(parts) - above] if above else parts)
    return ImportedName(".".join(filter(None, (base, what.module))), what.name)


def _root(package: CodePackage) -> _Root | None:
    """The root of a component; None where its code is in an archive or compiled and cannot be followed."""
    if package.folders:
        return _Root(package.name, package.folders)
    (file,) = package.single
    return _Root(package.name, file=file) if file.endswith(".py") else None


def _kernel_roots() -> list[_Root]:
    above = Path(pipebench.__file__).parent.parent
    return [_Root(name, (str(above.joinpath(*name.split("."))),)) for name in KERNELS]


def _code_of(file: CodeFile) -> PythonCode:
    known = _codes.get(file.path)
    if known is None or known[0] != file.stamp:
        data = content(file.path)
        known = file.stamp, python_code(data) if file.path.endswith(".py") else plain(data)
        _codes[file.path] = known
    return known[1]


def _whole(code: PythonCode) -> bytes:
    outside = sorted(f"{name} {each}" for name, found in code.bound.items() for each in found)
    digests = sorted(each.digest for each in code.definitions.values())
    text = "\0".join(outside).encode(errors="surrogatepass")
    return hashlib.sha256(b"".join((*digests, code.rest.digest, text))).digest()


def _remembered_code(name: str, compiled: list[CodeFile]) -> Code | None:
    """The code as computed before, if none of its files has changed since."""
    if name not in _reached:
        return None
    extra, code = _reached[name]
    if tuple(compiled) != extra:
        return None
    try:
        same = all(code_file(Path(file.path), "") == file for file in code.files)
    except PipebenchError:
        return None
    return code if same else None


def _remember(name: str, reached: _ModuleWalk, compiled: list[CodeFile]) -> Code:
    files = tuple(file for _, file in reached.files.values())
    code = Code(reached.digest(), frozenset(reached.outside), files)
    _reached[name] = tuple(compiled), code
    return code
