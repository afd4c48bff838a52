"""Alters the cost model of this process and of all that it starts, in one place, before anyone reads it.

Python imports this module at its start where this folder is on its path. ALTERED_WORLD names the world.
"""

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

FORMULA = "pipebench.costs.formula"


class Altering:
    """Finds the module of the formulas as everybody does, and alters them once they are loaded."""

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """The spec of the formulas, with a loader that alters them; None for any other module."""
        if name != FORMULA:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        execute = spec.loader.exec_module

        def execute_and_alter(module: ModuleType) -> None:
            execute(module)
            alter(module.Formula, os.environ["ALTERED_WORLD"])

        spec.loader.exec_module = execute_and_alter  # type: ignore[method-assign]
        return spec


def alter(formula: Any, world: str) -> None:
    """Replace methods of the formulas: those of one world, or of `all`."""
    state, live, update, message = formula.state_bytes, formula.live_bytes, formula.update_ns, formula.message_ns

    def more_state(self: Any, parameter_bytes: Any, replicas: int) -> Any:
        return state(self, parameter_bytes, replicas) + int(os.environ["ALTERED_STATE_BYTES"])

    def more_live(self: Any, kept_bytes: Any) -> Any:
        return live(self, kept_bytes) + int(os.environ["ALTERED_LIVE_BYTES"])

    def longer_update(self: Any, reduce_ns: Any, *stage: Any) -> Any:
        return update(self, reduce_ns, *stage) + int(os.environ["ALTERED_UPDATE_NS"])

    def longer_message(level: Any, bytes_sent: Any, senders: int, receivers: int) -> Any:
        return 2 * message(level, bytes_sent, senders, receivers)

    changes: dict[str, tuple[str, Any]] = {
        "state": ("state_bytes", more_state),
        "live": ("live_bytes", more_live),
        "update": ("update_ns", longer_update),
        "messages": ("message_ns", staticmethod(longer_message)),
    }
    for name, (method, altered) in changes.items():
        if world in (name, "all"):
            setattr(formula, method, altered)


if "ALTERED_WORLD" in os.environ:
    sys.meta_path.insert(0, Altering())  # type: ignore[arg-type]
