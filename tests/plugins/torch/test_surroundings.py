"""What PyTorch finds around it: a torchvision of this torch or of another one, and the files of CUDA's driver."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench.bench.searches.isolation.confinement import confine, landlock_version
from pipebench_torch.plugin import FOLDERS

OF_THIS_TORCH = """
import torch
_library = torch.library.Library("torchvision", "DEF")
for _name in ("nms", "qnms"):
    _library.define(_name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""
OF_ANOTHER_TORCH = """
import torch
@torch.library.register_fake("torchvision::nms")
def _nms(dets, scores, iou_threshold):
    return dets
"""
ASK = """
from pipebench_torch.modules.catalog import source_of
print(source_of("torchvision:resnet50").build().__class__.__name__)
"""


@pytest.mark.parametrize("content", [OF_THIS_TORCH, OF_ANOTHER_TORCH])
def test_torchvision_is_imported_whether_it_has_its_own_operators_or_not(tmp_path: Path, content: str) -> None:
    """To declare an operator a second time ends the process with SIGABRT."""
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text(content)
    (package / "models.py").write_text("import torch\nresnet50 = lambda **_: torch.nn.Identity()\n")
    path = os.pathsep.join([str(tmp_path), *(entry for entry in sys.path if entry)])
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "Identity", done.stderr


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
def test_a_confined_process_may_name_its_threads() -> None:
    """CUDA's driver names a thread of each process when it starts; where it may not, there is no device."""
    answer, told = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"nothing"
        try:
            confine([folder for folder in FOLDERS if os.path.isabs(folder)], network=True)
            written = subprocess.run(
                [sys.executable, "-c", "open('/proc/self/comm', 'w').write('named')"], check=False
            ).returncode
            Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("named")
            said = b"named" if written == 0 else b"its child may not"
        except OSError as error:
            said = str(error).encode()
        finally:
            os.write(told, said)
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(answer, 1000) == b"named"
