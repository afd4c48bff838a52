"""What finding a plugin costs: its module and hooks in a fresh interpreter."""

import json
import subprocess
import sys
from functools import lru_cache

from pipebench.hooks.heavy import HEAVY
from pipebench.testing.subject import Subject
from pipebench.testing.verdicts import Failed

CODE = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
module, slots = sys.argv[2], json.loads(sys.argv[3])
import pipebench.hooks.manager
from importlib import import_module
before = set(sys.modules)
found = import_module(module)
for slot in slots:
    hook = getattr(found, "pipebench_" + slot, None)
    list(hook() if hook else ())
json.dump(sorted(set(sys.modules) - before), sys.stderr)
"""
MOST_S = 60.0


def discovery(subject: Subject) -> None:
    """Nothing heavy is imported, nothing printed, while a plugin is found and its hooks are called."""
    assert subject.point is not None
    code, printed, imported = _imported(subject.point.module, subject.slot, json.dumps(sys.path))
    if code != 0:
        raise Failed(f"{subject.point.module} cannot be imported in a fresh interpreter: {imported[:200]}")
    if printed:
        raise Failed(f"{subject.point.module} prints {printed.strip()[:60]!r} while it is imported")
    heavy = sorted({name.partition(".")[0] for name in json.loads(imported)} & HEAVY)
    if heavy:
        raise Failed(f"{subject.point.module} imports {', '.join(heavy)}; import where `load` points to")


@lru_cache(maxsize=256)
def _imported(module: str, slot: str, path: str) -> tuple[int, str, str]:
    """Exit code, what was printed, and the modules as JSON (or the last line of the error)."""
    command = [sys.executable, "-c", CODE, path, module, json.dumps([slot])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_S, check=False)
    except subprocess.TimeoutExpired:
        return 1, "", f"no end within {MOST_S:g} s"
    lines = done.stderr.strip().splitlines() or [""]
    return done.returncode, done.stdout, lines[-1]
