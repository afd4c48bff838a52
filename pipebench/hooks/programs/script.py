"""A planner in one file: ./mine.py with a function plan(problem, context)."""

import ast
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from pipebench.domain.errors import PipebenchError, PluginNotLoaded, nearest
from pipebench.hooks.discovery import cause

FUNCTION = "plan"
CALLS = "CALLS"
"""What a file binds to the names of planners and schedulers that it asks its context for: a tuple of texts."""


def check_script(path: str) -> None:
    """Check, without running the file, that it binds the function.

    A file that is no Python passes: it fails where it is run, as one whose imports fail, and costs its own row.
    Raises PipebenchError when the file is missing or has no such function.
    """
    tree = _parsed(path)
    if tree is None:
        return
    names = set(_bound(tree))
    if FUNCTION not in names and "*" not in names:
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        raise _without(path, [name for name in functions if not name.startswith("_")])


def script_calls(path: str) -> tuple[str, ...]:
    """The names in CALLS of the file, read without running it; () where it has none.

    path: a file that `check_script` accepts.
    Raises PipebenchError when CALLS is anything but a literal of strings.
    """
    tree = _parsed(path)
    for statement in tree.body if tree is not None else ():
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == CALLS:
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name == CALLS:
                pass
            case _:
                continue
        try:
            named = ast.literal_eval(value)
        except ValueError:
            named = None
        if isinstance(named, tuple | list) and all(isinstance(each, str) for each in named):
            return tuple(named)
        raise PipebenchError(f"{path}: {CALLS} is no tuple of names", f'write {CALLS} = ("pipedream",)')
    return ()


def _parsed(path: str) -> ast.Module | None:
    """The syntax of a file; None for one that is no Python."""
    try:
        return _syntax(_file(path).read_bytes(), path)
    except OSError as error:
        raise PipebenchError(f"{path}: {error.strerror or error}") from None


@lru_cache(maxsize=1)
def _syntax(source: bytes, path: str) -> ast.Module | None:
    """The last one is kept: what a file binds and what it calls are asked one after the other."""
    try:
        return ast.parse(source, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def load_script(path: str) -> Callable[..., Any]:
    """Run a Python file and return its function `plan`.

    Raises PipebenchError when the file is missing or has no such function, PluginNotLoaded when running it fails:
    that one does not name the file, whose row does.
    """
    file = _file(path)
    name = f"pipebench_script_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise PipebenchError(f"{path!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's file may raise anything, SystemExit included
        del sys.modules[name]
        raise PluginNotLoaded(cause(error)) from error
    found = getattr(module, FUNCTION, None)
    if not callable(found):
        raise _without(path, [key for key, value in vars(module).items() if callable(value) and key[0] != "_"])
    return cast(Callable[..., Any], found)


def _file(path: str) -> Path:
    file = Path(path)
    if not os.path.isfile(file):
        raise PipebenchError(f"there is no file {path!r}", "give the path of a Python file, such as ./mine.py")
    return file


def _without(path: str, offered: list[str]) -> PipebenchError:
    return PipebenchError(f"{path}: has no function {FUNCTION}(problem, context)", nearest(FUNCTION, offered))


def _bound(tree: ast.Module) -> Iterator[str]:
    """Every name that a module may bind, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name
