"""A worker that hangs, dies, is slow and large: what the runner must see."""

import os
import sys
import time

import msgspec

from tests.fuzz.outcomes import LONGEST_S, MOST_BYTES, Outcome


def main(arguments: list[str]) -> None:
    """As of tests.fuzz.worker."""
    first, end, step = map(int, arguments[3:6])
    for number in range(first, end, step):
        os.write(1, b"%d\n" % number)
        if number == 2:
            time.sleep(60)
        if number == 5:
            os._exit(9)
        seconds = LONGEST_S + 1 if number == 6 else 0.0
        peak_bytes = MOST_BYTES + 1 if number == 7 else 0
        os.write(1, msgspec.json.encode(Outcome(number=number, seconds=seconds, peak_bytes=peak_bytes)) + b"\n")


if __name__ == "__main__":
    main(sys.argv[1:])
