"""A process beside a measurement: `python -m pipebench_torch.profiling.companion FILE`; sizes on its input."""

import os
import sys
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import msgspec

from pipebench.system.parent import end_with_parent
from pipebench_torch.profiling.companions import READY, Company


def main(file: Path) -> int:
    """Run passes of the size read last from the input, until the input ends."""
    end_with_parent(os.getppid())
    import torch

    from pipebench_torch.machine import machine_of
    from pipebench_torch.modules.profile_models import subject
    from pipebench_torch.profiling.passes import passes_of

    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a model prints is no answer
    sizes: SimpleQueue[int] = SimpleQueue()
    Thread(target=_listen, args=(sizes,), daemon=True).start()
    company = msgspec.msgpack.decode(file.read_bytes(), type=Company)
    torch.set_num_threads(company.options.threads)
    device = machine_of(company.device, "gloo", company.place).device
    model = subject(company.graph, company.model, company.precision, company.options, company.seed, device)
    while size := sizes.get():
        passes = passes_of(model, size, device)
        passes.whole()
        answers.write(READY + b"\n")
        while sizes.empty():
            passes.whole()
    return 0


def _listen(sizes: SimpleQueue[int]) -> None:
    for line in sys.stdin:
        sizes.put(int(line))
    sizes.put(0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
