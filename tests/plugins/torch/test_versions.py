"""The driver of a card, as Linux tells it."""

from importlib.metadata import version
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

import torch

from pipebench_torch.profiling import profiler
from pipebench_torch.profiling.profiler import driver_version, versions

CLOSED = """NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024
GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)
"""
OPEN = """NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.28.03  Release Build  (dvs-builder@U16)
GCC version:  gcc version 11.4.0
"""


@pytest.mark.parametrize(
    ("text", "told"), [(CLOSED, "550.54.15"), (OPEN, "560.28.03"), ("nothing of it", ""), (None, "")]
)
def test_driver(text: str | None, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "version"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(profiler, "DRIVER", file)
    assert driver_version() == told


def test_a_card_adds_its_libraries_and_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "version"
    file.write_text(CLOSED)
    monkeypatch.setattr(profiler, "DRIVER", file)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 91100)
    added = versions("cuda").items() - versions("cpu").items()
    assert added == {("cuda", "13.0"), ("cudnn", "91100"), ("driver", "550.54.15")}
    assert versions("cpu")["torch"] == version("torch")
