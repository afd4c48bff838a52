"""Whether torch is there; nothing that imports it is imported before."""

import importlib.util

from pipebench.domain.errors import PipebenchError


def require_torch() -> None:
    """Raises PipebenchError with the remedy when torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        raise PipebenchError("torch is not installed", "pip install 'pipebench[torch]'")
