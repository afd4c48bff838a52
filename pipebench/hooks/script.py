"""A planner in one file: ./mine.py with a function plan(problem, context)."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from pipebench.domain.errors import PipebenchError, PluginNotLoaded, nearest
from pipebench.hooks.discovery import first_line


def load_script(path: str, function: str = "plan") -> Callable[..., Any]:
    """The function of that name in a Python file.

    Raises PipebenchError when the file is missing or has no such function, PluginNotLoaded when running it
    fails.
    """
    file = Path(path)
    if not file.is_file():
        raise PipebenchError(f"there is no file {path!r}", "give the path of a Python file, such as ./mine.py")
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
        raise PluginNotLoaded(f"{path}: {type(error).__name__}: {first_line(error)}") from error
    found = getattr(module, function, None)
    if not callable(found):
        public = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise PipebenchError(f"{path}: has no function {function}(problem, context)", nearest(function, public))
    return cast(Callable[..., Any], found)
