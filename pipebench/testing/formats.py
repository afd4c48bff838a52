"""Checks of formats: a sample is read, what is no such file is refused in one line."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files

from msgspec.structs import replace

from pipebench.domain.errors import PipebenchError
from pipebench.formats.profile_file import FORMATS
from pipebench.hooks.descriptors import Format
from pipebench.hooks.manager import Host
from pipebench.testing.asked import Asked, broken
from pipebench.testing.calls import Call
from pipebench.testing.descriptions import tried_options
from pipebench.testing.subject import Subject
from pipebench.testing.verdicts import Failed, Waived, first_failure

SAMPLES = "PIPEBENCH_SAMPLES"
"""Of a plugin's module: name of a format to "package:path" of a small file of that format."""
GARBAGE = {
    "empty": b"",
    "binary": bytes(range(256)) * 4,
    "json": b'{"kind": "nothing", "values": [1, 2, {"x": null}]}',
    "text": "zwölf Boxkämpfer\n1,2,3\n\n;;\n".encode(),
}


def format_checks(host: Host, subject: Subject) -> Iterator[tuple[str, Callable[[], None]]]:
    """The sample whole, cut short, and four files that are something else."""
    del host
    assert isinstance(subject.component, Format)
    name = f"sample{(subject.component.suffixes or ('',))[0]}"
    sample = _sample(subject)

    def call(label: str, about: str, data: bytes) -> Call:
        return Call(name=about, slot="formats", component=label, data=data, request=f"{about}-{name}")

    calls = [call(subject.label, about, data) for about, data in GARBAGE.items()]
    if sample is not None:
        calls.insert(0, call(subject.label, "sample", sample))
        calls += [call(subject.label, f"cut to {part}/4", sample[: len(sample) * part // 4]) for part in (1, 2, 3)]
    asked = Asked(calls, lambda given, about: replace(given, name=about))
    yield "suffixes", partial(_suffixes, subject.component)
    yield "sample", partial(_read, asked, sample)
    yield "garbage", partial(_refused, asked)
    yield "determinism", asked.determinism
    yield "silence", asked.silence
    yield "state", asked.state
    yield "options", partial(tried_options, subject, lambda label: call(label, label, sample or b""))


def _sample(subject: Subject) -> bytes | None:
    module = sys.modules.get(subject.point.module) if subject.point is not None else None
    declared = getattr(module, SAMPLES, {})
    if not isinstance(declared, dict) or subject.component.name not in declared:
        return None
    named = str(declared[subject.component.name])
    package, _, path = named.partition(":")
    try:
        return files(package).joinpath(path).read_bytes()
    except (ImportError, OSError, ValueError, TypeError) as error:
        what = f"{SAMPLES}: no file {named!r}: {type(error).__name__}"
        raise PipebenchError(what, 'write {"format": "package:path"}') from None


def _suffixes(component: Format) -> None:
    """Files are found by the end of their name, one that no other format has."""
    if not component.suffixes:
        raise Failed("no suffix: files of this format are never found")
    own = {each.suffix: each.name for each in FORMATS if each.suffix}
    first_failure(f"suffix {s!r} belongs to the format {own[s]!r}" for s in component.suffixes if s in own)


def _read(asked: Asked, sample: bytes | None) -> None:
    """The sample that the plugin names is read."""
    if sample is None:
        raise Waived(f'the plugin names no sample: {SAMPLES} = {{"format": "package:path"}}')
    answer = asked.first["sample"]
    if answer.ending != "returned":
        raise Failed(f"its own sample: {answer.ending}: {answer.reason}")


def _refused(asked: Asked) -> None:
    """A file that is cut short or something else is an error that names it, never a crash or a profile."""
    for about, answer in asked.first.items():
        reason = broken(answer)
        if reason:
            raise Failed(f"{reason}; raise PipebenchError that names the file (context.request)")
        if about in GARBAGE and answer.ending == "returned":
            raise Failed(f"{about}: a file that is something else is read as a profile")
