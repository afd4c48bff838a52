"""Faulty distributions on the import path, installed once."""

import sys
from collections.abc import Iterator

import pytest

from pipebench.hooks.manager import Host
from tests.testing.faulty_components import install_faulty_components
from tests.testing.faulty_planners import install_faulty_planners


@pytest.fixture(scope="module")
def faulty_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("faulty")
    install_faulty_planners(folder)
    install_faulty_components(folder)
    sys.path.insert(0, str(folder))
    yield Host()
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.startswith("faulty_")]:
        del sys.modules[name]
