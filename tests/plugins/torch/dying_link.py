"""A process of a link measurement, of which rank 2 is killed while ranks 0 and 1 are measured."""

import os
import signal
import sys
from pathlib import Path

from pipebench_torch.profiling.link_worker import main
from pipebench_torch.profiling.wire import Wire

if os.environ["RANK"] == "2":

    def dies(self: Wire, own: object, whom: str) -> list[object]:
        """In place of the first wait."""
        del own
        self.status.say(f"waiting for {whom}")
        os.kill(os.getpid(), signal.SIGKILL)
        return []

    Wire.gather = dies  # type: ignore[method-assign]

if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[-1])))
