"""What a measurement was made with: packages, and under a card its libraries and driver."""

import importlib.metadata
import platform
import re
import sys
from pathlib import Path

DRIVER = Path("/proc/driver/nvidia/version")
"""Of Linux's NVIDIA driver, with `NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar …`."""
PACKAGES = ("torch", "torchvision", "transformers")


def versions(device: str) -> dict[str, str]:
    """By name; torchvision and transformers where they are in use. device: `cpu` or `cuda`."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        if package == "torch" or package in sys.modules:
            found[package] = importlib.metadata.version(package)
    if device == "cuda":
        found |= {name: version for name, version in _of_cards() if version}
    return found


def _of_cards() -> list[tuple[str, str]]:
    import torch

    cudnn = torch.backends.cudnn.version()
    return [
        ("cuda", str(torch.version.cuda or "")),
        ("cudnn", str(cudnn or "")),
        ("driver", driver_version()),
    ]


def driver_version() -> str:
    """Of the NVIDIA driver, empty where there is none."""
    try:
        text = DRIVER.read_text()
    except OSError:
        return ""
    said = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", text)
    return said.group(1) if said else ""
