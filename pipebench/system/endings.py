"""How a process ended, in words."""

import signal


def exit_text(code: int) -> str:
    """`ended with exit code 3`; of minus the number of a signal `was killed by SIGKILL`."""
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was killed by {signal_name(-code)}"


def signal_name(number: int) -> str:
    """The name of a signal."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
