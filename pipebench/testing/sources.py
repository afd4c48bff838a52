"""Checks of profilers, models and formats: where problems come from."""

from collections.abc import Callable, Iterator
from functools import partial

from msgspec.structs import replace

from pipebench.algorithms.graph_orders import pieces
from pipebench.domain.cluster import DeviceType
from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.profile import Profile
from pipebench.formats.profiles.files import FORMATS
from pipebench.hooks.descriptors import Format
from pipebench.hooks.manager import Host
from pipebench.testing.calls import Answer, Call
from pipebench.testing.descriptions import tried_options
from pipebench.testing.sessions import RepeatedCalls, breakdown, left_nothing, package_file
from pipebench.testing.targets import CheckTarget
from pipebench.testing.verdicts import Failed, Waived, first_failure

SAMPLES = "PIPEBENCH_SAMPLES"
"""Of a plugin's module: name of a format to "package:path" of a small file of that format."""
GARBAGE = {
    "empty": b"",
    "binary": bytes(range(256)) * 4,
    "json": b'{"kind": "nothing", "values": [1, 2, {"x": null}]}',
    "text": "zwölf Boxkämpfer\n1,2,3\n\n;;\n".encode(),
}


def format_checks(host: Host, subject: CheckTarget) -> Iterator[tuple[str, Callable[[], None]]]:
    """The sample whole, cut short, and four files that are something else."""
    assert isinstance(subject.component, Format)
    name = f"sample{(subject.component.suffixes or ('',))[0]}"
    sample = _sample(host, subject)

    def call(label: str, about: str, data: bytes) -> Call:
        return Call(name=about, slot="formats", component=label, data=data, request=f"{about}-{name}")

    calls = [call(subject.label, about, data) for about, data in GARBAGE.items()]
    if sample is not None:
        calls.insert(0, call(subject.label, "sample", sample))
        calls += [call(subject.label, f"cut to {part}/4", sample[: len(sample) * part // 4]) for part in (1, 2, 3)]
    asked = RepeatedCalls(subject.calls, calls, lambda given, about: replace(given, name=about))
    yield "suffixes", partial(_suffixes, subject.component)
    yield "sample", partial(_read, asked, sample)
    yield "garbage", partial(_garbage_refused, asked)
    yield "determinism", asked.determinism
    yield "silence", asked.silence
    yield "state", asked.state
    yield "options", partial(tried_options, subject, lambda label: call(label, label, sample or b""))


def _sample(host: Host, subject: CheckTarget) -> bytes | None:
    declared = host.constants(subject.point.value).get(SAMPLES, {}) if subject.point is not None else {}
    if not isinstance(declared, dict) or subject.component.name not in declared:
        return None
    named = str(declared[subject.component.name])
    found = package_file(named)
    if found.missing:
        raise PipebenchError(f"{SAMPLES}: no file {named!r}: {found.missing}", 'write {"format": "package:path"}')
    return found.data


def _suffixes(component: Format) -> None:
    """Files are found by the end of their name, one that no other format has."""
    if not component.suffixes:
        raise Failed("no suffix: files of this format are never found")
    own = {each.suffix: each.name for each in FORMATS if each.suffix}
    first_failure(f"suffix {s!r} belongs to the format {own[s]!r}" for s in component.suffixes if s in own)


def _read(asked: RepeatedCalls, sample: bytes | None) -> None:
    """The sample that the plugin names is read."""
    if sample is None:
        raise Waived(f'the plugin names no sample: {SAMPLES} = {{"format": "package:path"}}')
    answer = asked.first["sample"]
    if answer.ending not in ("returned", "not asked"):
        raise Failed(f"its own sample: {answer.ending}: {answer.reason}")


def _garbage_refused(asked: RepeatedCalls) -> None:
    """A file that is cut short or something else is an error that names it, never a crash or a profile."""
    for about, answer in asked.first.items():
        reason = breakdown(answer)
        if reason:
            raise Failed(f"{reason}; raise PipebenchError that names the file (context.request)")
        if about in GARBAGE and answer.ending == "returned":
            raise Failed(f"{about}: a file that is something else is read as a profile")


Checks = Iterator[tuple[str, Callable[[], None]]]
SIZES = (1, 4, 16)
DEVICES = tuple(
    DeviceType(
        name=f"kit-{name}",
        memory_bytes=16 * 10**9,
        peak_flops={"fp32": rate, "fp16": 4 * rate, "bf16": 4 * rate},
        memory_bandwidth_bytes_s=9e11,
        peer_bandwidth_bytes_s=1e11,
    )
    for name, rate in (("slow", 1e13), ("fast", 2e13))
)


def profiler_checks(host: Host, subject: CheckTarget) -> Checks:
    """Two linear layers and a relu on two device types at three sizes."""
    del host

    def call(label: str, name: str, graph: OperatorGraph) -> Call:
        return Call(
            name=name, slot="profilers", component=label, graph=graph, devices=DEVICES, micro_batches=SIZES
        )

    asked = RepeatedCalls(
        subject.calls,
        [call(subject.label, "layers", layers()), call(subject.label, "unknown kind", layers("no-such-kind"))],
        lambda given, name: replace(given, name=name),
    )
    yield "profile", partial(_profile_complete, asked)
    yield "unknown-kind", partial(_no_crash, asked, "unknown kind")
    yield "determinism", partial(_figures, asked)
    yield "silence", asked.silence
    yield "state", partial(_state_unchanged, asked)
    yield "options", partial(tried_options, subject, lambda label: call(label, label, layers()))


def model_checks(host: Host, subject: CheckTarget) -> Checks:
    """The model as it is, and with each of its options."""
    del host

    def call(label: str, name: str) -> Call:
        return Call(name=name, slot="models", component=label)

    asked = RepeatedCalls(
        subject.calls, [call(subject.label, "default")], lambda given, name: replace(given, name=name)
    )
    yield "graph", partial(_graph_is_connected, asked)
    yield "determinism", asked.determinism
    yield "silence", asked.silence
    yield "state", asked.state
    yield "options", partial(tried_options, subject, lambda label: call(label, label))


def layers(kind: str = "relu") -> OperatorGraph:
    """linear, `kind`, linear on 64 features."""
    wide = 64
    dims = {"in_features": wide, "out_features": wide}
    names = ("first", "middle", "last")
    operators = tuple(
        Operator(
            name=name,
            kind="linear" if name != "middle" else kind,
            dims=dims if name != "middle" else {"features": wide},
            inputs=(("input", *names)[position],),
            parameters=(f"{name}.weight",) if name != "middle" else (),
            axes={
                ("input", *names)[position]: ("batch", "features" if name == "middle" else "in_features"),
                name: ("batch", "features" if name == "middle" else "out_features"),
            },
        )
        for position, name in enumerate(names)
    )
    size = 4.0 * wide
    tensors = tuple(
        Tensor(
            name=name,
            producer=None if name == "input" else name,
            forward_bytes_per_sample=size,
            gradient_bytes_per_sample=0.0 if name == "input" else size,
        )
        for name in ("input", *names)
    )
    parameters = tuple(Parameter(name=f"{name}.weight", bytes=4 * wide * wide) for name in ("first", "last"))
    return OperatorGraph(name="layers", operators=operators, tensors=tensors, parameters=parameters)


def _successful_answer(asked: RepeatedCalls, name: str) -> Answer:
    answer = asked.first[name]
    if answer.ending == "not asked":
        raise Waived(f"{answer.ending}: {answer.reason}")
    if answer.ending != "returned":
        raise Failed(f"{name}: {answer.ending}: {answer.reason}")
    return answer


def _graph_is_connected(asked: RepeatedCalls) -> None:
    """A graph in one piece: from each operator to each other along tensors, whichever way they flow."""
    graph = _successful_answer(asked, "default").graph
    assert graph is not None
    flows = ((operator, *readers) for operator, readers in enumerate(graph.successors))
    found = pieces(len(graph.operators), flows)
    if len(found) > 1:
        names = " and ".join(repr(graph.operators[piece[0]].name) for piece in found[:2])
        raise Failed(f"{len(found)} pieces with no tensor between them, those of {names} among them")


def _state_unchanged(asked: RepeatedCalls) -> None:
    """A call leaves everything as it was."""
    left_nothing(asked.everything())


def _no_crash(asked: RepeatedCalls, name: str) -> None:
    """An operator of a kind that nobody knows is an error that says so, not a crash."""
    reason = breakdown(asked.first[name])
    if reason:
        raise Failed(f"{reason}; raise PipebenchError that says what is missing")


def _profile_complete(asked: RepeatedCalls) -> None:
    """Times for every operator, on every device type and at every size that was asked for; and who measured."""
    profile = _successful_answer(asked, "layers").profile
    assert profile is not None
    missing = [device.name for device in DEVICES if device.name not in profile.device_types]
    if missing:
        raise Failed(f"no costs for device type {missing[0]!r}, which context.request.devices names")
    given = [operator.name for operator in layers().operators]
    if [operator.name for operator in profile.graph.operators] != given:
        raise Failed("the profile's operators are not those of the graph, in order")
    for costs in profile.costs:
        if costs.micro_batches != SIZES:
            raise Failed(f"micro-batches {costs.micro_batches} are profiled, {SIZES} were asked for")
        if not any(sum(operator.forward_s) + sum(operator.backward_s) > 0 for operator in costs.operators):
            raise Failed(f"everything takes no time on {costs.device_type!r}")
    if not profile.provenance.profiler:
        raise Failed("provenance.profiler is empty: who measured?")


def _figures(asked: RepeatedCalls) -> None:
    """Two processes get the same figures, or provenance.relative_spread says how much they vary."""
    pair = [answers["layers"].profile for answers in (asked.first, asked.second)]
    if not all(isinstance(profile, Profile) for profile in pair):
        return
    if pair[0] != pair[1]:
        spread = pair[0] is not None and pair[0].provenance.relative_spread is not None
        if spread:
            raise Waived("its figures are measured: provenance.relative_spread says how much they vary")
        raise Failed("two processes get different figures, and provenance.relative_spread does not say so")
