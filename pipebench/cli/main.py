"""The `pipebench` command: commands are imported when they are used."""

import errno
import os
import sys
from typing import Any

import click

from pipebench import __version__
from pipebench.cli.groups import Invocation, lazy_group
from pipebench.cli.terminal import outlive_readers, say
from pipebench.documents.printable import in_unicode
from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.system.files import discard

SECTIONS = {
    "Compare and plan": {
        "compare": "run planners on the same problems and score their plans",
        "plan": "make one plan and show its stages",
        "draw": "draw the timeline of schedules, nothing else needed",
        "export": "a plan in the words of a training framework",
        "validate": "check a plan: valid, or a witness of what is wrong",
    },
    "Look at results": {
        "show": "show what is in a file",
        "report": "stored results as a page or a table",
        "certify": "what proves a plan's time and its bound, written or checked",
        "diff": "what changed between two plans or two sets of results",
        "rerun": "run stored trials again: same, different or not runnable",
        "merge": "several stores as one, such as the shards of a sweep",
        "pack": "a store as one file, to pass on",
    },
    "Profiles and files": {
        "profile": "what the operators of a model cost, computed or measured",
        "convert": "a profile from one file format to another",
        "schema": "the JSON Schema of a document",
    },
    "Real devices": {
        "execute": "run a plan on processes or devices and set it beside its simulation",
        "attach": "traces of a run that was launched elsewhere, beside a row",
        "accuracy": "predictions held against measured training iterations",
        "calibrate": "constants of a device and a framework from a few measured runs",
    },
    "Every night": {"track": "night after night: what became slower or worse"},
    "Papers": {
        "reproduce": "run a paper's figure again and judge its claims",
        "originals": "the authors' own code, from your checkout, beside ours",
    },
    "Plugins and reference": {
        "list": "what there is: planners, schedulers, models, profiles, …",
        "info": "all about one component",
        "glossary": "what the words mean, by subject or one at a time",
        "plugin": "write, check and look after plugins: new, check, list, doctor",
    },
}
FOLDERS = {
    "Compare and plan": "planning",
    "Look at results": "results",
    "Profiles and files": "files",
    "Real devices": "devices",
    "Papers": "papers",
    "Plugins and reference": "reference",
}
"""By heading, the folder in which the modules of its commands stand."""
COMMANDS = {name: text for section in SECTIONS.values() for name, text in section.items()}
COMPLETION = 'Completion of names: eval "$(_PIPEBENCH_COMPLETE=bash_source pipebench)"'


OUTPUT_FAILED = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""Errors of a write to standard output that is full, or gone."""


@click.group(
    cls=lazy_group("pipebench.cli.commands", SECTIONS, folders=FOLDERS),
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=COMPLETION,
)
@click.version_option(__version__, prog_name="pipebench")
def main() -> None:
    """Compare pipeline-parallelism planners under one cost model, one check and one simulator."""


def entry() -> None:
    """Run the command and turn every outcome into an exit code; a user's mistake gives one line."""
    outlive_readers()
    sys.exit(run(sys.argv[1:], alone=True))


def run(arguments: list[str], alone: bool = False) -> int:
    """The exit code of one command line; without a command, the help."""
    if sys.stdout is None:  # closed by the caller, who wants no output
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    try:
        typed = Invocation(tuple(arguments or ["--help"]), alone)
        returned: Any = main.main(args=list(typed.words), prog_name="pipebench", standalone_mode=False, obj=typed)
        sys.stdout.flush()
    except PipebenchError as error:
        from pipebench.report.units import with_readable_bytes

        return _fail(with_readable_bytes(str(error)), error.exit_code)
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", ExitCode.INTERRUPTED)
    except click.ClickException as error:
        return _fail(error.format_message(), ExitCode.USAGE)
    except SystemExit as error:  # of click: names are completed, or the reader of some stream has gone
        return ExitCode.READER_GONE if error.code else ExitCode.OK
    except BrokenPipeError:  # the same, in the flush of what was left
        discard(sys.stdout.fileno())
        return ExitCode.READER_GONE
    except Exception as error:
        if _out_of_memory(error):
            return _fail("out of memory: raise the limit (ulimit -v), or close other programs", ExitCode.USAGE)
        if isinstance(error, OSError) and error.errno in OUTPUT_FAILED and error.filename is None:
            discard(sys.stdout.fileno())
            return _fail(f"cannot write the output: {(error.strerror or str(error)).lower()}", ExitCode.USAGE)
        if os.environ.get("PIPEBENCH_DEBUG"):
            raise
        if isinstance(error, UnicodeEncodeError):
            return _fail(_cannot_write(error), ExitCode.USAGE)
        what = f"{type(error).__name__}: {error}"
        return _fail(f"internal error: {what} (PIPEBENCH_DEBUG=1 shows where)", ExitCode.INTERNAL)
    return returned if isinstance(returned, int) else ExitCode.OK


BESIDE = 40
"""Letters that are shown on each side of those that cannot be written."""


def _cannot_write(error: UnicodeEncodeError) -> str:
    """Which name has letters that cannot be written, and what to do."""
    part = in_unicode(error.object[max(0, error.start - BESIDE) : error.end + BESIDE])
    if error.encoding != "utf-8":
        return f"{part!r} cannot be written in {error.encoding}: set PYTHONUTF8=1, or LC_ALL to a UTF-8 locale"
    return f"'{part}' is not UTF-8: rename the file or the folder, or give a link that has another name"


NO_MEMORY = ("cannot allocate memory", "failed to map segment")
"""What the dynamic loader says of a library for which there is no room."""


def _memory_is_limited() -> bool:
    """Whether allocations may fail at a limit: Python's own C code then loses errors on the way (SystemError)."""
    import resource

    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _out_of_memory(error: BaseException | None) -> bool:
    """Whether memory ran out: here, or for a library that the error says could not be loaded."""
    while error is not None:
        refused = isinstance(error, OSError) and error.errno == errno.ENOMEM
        lost = isinstance(error, SystemError) and _memory_is_limited()
        if refused or lost or isinstance(error, MemoryError):
            return True
        if any(words in str(error).lower() for words in NO_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


MOST_SAID, LAST_SAID = 2000, 500
"""Letters of a message, and of its end, where what to do stands: a stranger's file may have a name of millions."""


def _fail(message: str, code: int) -> int:
    line = " ".join(message.split())
    if len(line) > MOST_SAID:
        line = f"{line[: MOST_SAID - LAST_SAID]} … {line[-LAST_SAID:]}"
    say(f"pipebench: {line}", err=True)
    return code
