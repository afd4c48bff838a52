"""Other people's data, read in place; a test that needs it is skipped when the folder is missing."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared_data(relative: str) -> Path:
    """The path of a shared data file; skips the running test when it is not there."""
    path = FOLDER / relative
    if not path.exists():
        pytest.skip(f"needs the shared data file {relative}")
    return path
