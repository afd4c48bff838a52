"""The code of a Python file without comments, docstrings and formatting, and what it imports.

Each definition of a module (a function, a class, a constant) has a digest of its own, so that it can be moved to
another module. Import statements are in no digest: `reach` looks up what an imported name stands for.
"""

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

HOST = "pipebench"
DYNAMIC = frozenset(
    {"import_module", "__import__", "spec_from_file_location", "iter_modules", "walk_packages", "run_module"}
)
"""Who uses one of these imports modules that no import statement names."""
EMPTY = hashlib.sha256(b"").digest()
"""The digest of no code at all."""
_UNSAID = frozenset({"ctx", "kind", "type_comment"})
_MODULE = re.compile(r"\w+(\.\w+)+")


@dataclass(frozen=True, slots=True, order=True)
class ImportedName:
    """What an import statement names.

    level: dots before the module.
    name: the name taken from the module; "" for the module itself.
    """

    module: str
    name: str = ""
    level: int = 0


@dataclass(frozen=True, slots=True)
class Definition:
    """Code under one digest, and the names that it mentions."""

    digest: bytes
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class PythonCode:
    """The code of one file.

    definitions: by name.
    rest: all other statements of the module, in order.
    bound: each name with what it may be imported from.
    imports: all imports, also those inside functions.
    texts: strings that look like a module, as in `python -m`.
    dynamic: whether it imports by a computed name.
    """

    definitions: Mapping[str, Definition]
    rest: Definition
    bound: Mapping[str, frozenset[ImportedName]]
    imports: frozenset[ImportedName]
    texts: frozenset[str]
    dynamic: bool = False


def python_code(data: bytes) -> PythonCode:
    """The code of a file. For a file that is no Python, its bytes."""
    try:
        return _code_of(ast.parse(data))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return plain(data)


def plain(data: bytes) -> PythonCode:
    """The code of a file whose bytes count as they are."""
    rest = Definition(hashlib.sha256(data).digest(), frozenset())
    return PythonCode({}, rest, {}, frozenset(), frozenset())


def _code_of(tree: ast.Module) -> PythonCode:
    statements = _effective_statements(tree.body)
    named = [(_name(statement), statement) for statement in statements]
    times = Counter(name for name, _ in named)
    definitions: dict[str, Definition] = {}
    whole, rest = _SyntaxReader(), _SyntaxReader()
    for name, statement in named:
        if name == "__all__":
            continue
        if name and times[name] == 1:
            reader = _SyntaxReader()
            reader.read(statement)
            definitions[name] = reader.definition()
            whole.take_imports(reader)
        else:
            rest.read(statement)
    whole.take_imports(rest)
    bound = {name: frozenset(found) for name, found in whole.bound.items()}
    return PythonCode(
        definitions, rest.definition(), bound, frozenset(whole.imports), frozenset(whole.texts), whole.dynamic
    )


def _name(statement: ast.stmt) -> str:
    """The one name that a module's statement defines; "" for any other statement."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def _effective_statements(statements: Iterable[ast.stmt]) -> list[ast.stmt]:
    """The statements without effectless ones: strings, `pass`, and code for type checkers only."""
    return [statement for statement in statements if not _does_nothing(statement)]


def _does_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), orelse=[]):
            return True
    return False


class _SyntaxReader:
    """Writes syntax trees as words, and gathers names and imports."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.names: set[str] = set()
        self.imports: set[ImportedName] = set()
        self.bound: dict[str, set[ImportedName]] = {}
        self.texts: set[str] = set()
        self.dynamic = False

    def definition(self) -> Definition:
        """The definition of all nodes that were read."""
        text = "\0".join(self.words).encode(errors="surrogatepass")
        return Definition(hashlib.sha256(text).digest(), frozenset(self.names))

    def take_imports(self, other: "_SyntaxReader") -> None:
        """Add the imports that another reader gathered."""
        self.imports |= other.imports
        self.texts |= other.texts
        self.dynamic |= other.dynamic
        for name, found in other.bound.items():
            self.bound.setdefault(name, set()).update(found)

    def read(self, node: ast.AST) -> None:
        """Read a node and all nodes below it."""
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    self._bind(alias.asname or alias.name.partition(".")[0], ImportedName(alias.name))
                return
            case ast.ImportFrom(module=module, names=aliases, level=level):
                for alias in aliases:
                    self._bind(alias.asname or alias.name, ImportedName(module or "", alias.name, level))
                    self.dynamic |= alias.name in DYNAMIC
                return
            case ast.Name(id=name):
                self.names.add(name)
                self.dynamic |= name in DYNAMIC
            case ast.Attribute(attr=name):
                self.dynamic |= name in DYNAMIC
            case ast.Constant(value=str() as text) if len(text) < 200 and _MODULE.fullmatch(text):
                self.texts.add(text)
        self.words.append(f"({type(node).__name__}")
        for field in node._fields:
            if field not in _UNSAID:
                self._value(getattr(node, field, None))
        self.words.append(")")

    def _value(self, value: object) -> None:
        if isinstance(value, ast.AST):
            self.read(value)
        elif isinstance(value, list):
            self.words.append("[")
            for each in value:
                if not (isinstance(each, ast.stmt) and _does_nothing(each)):
                    self._value(each)
            self.words.append("]")
        else:
            self.words.append(f"{type(value).__name__} {value!r}")

    def _bind(self, name: str, what: ImportedName) -> None:
        self.imports.add(what)
        self.bound.setdefault(name, set()).add(what)
