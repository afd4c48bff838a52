"""pipebench profile: what the operators of a model cost on a device, as a profile file."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipebench.cli.application import open_host
from pipebench.cli.completion import of_slot, one_of
from pipebench.cli.parameters import OneOf, WholeFrom, launch_options, with_launch
from pipebench.cli.terminal import console, say
from pipebench.defaults import EXAMPLE_MODEL, MEASURING_PROFILER, PROFILER
from pipebench.domain.errors import PipebenchError

if TYPE_CHECKING:
    from pipebench.domain.cluster import DeviceType


PRECISIONS = ("fp32", "fp16", "bf16")

HELP = f"""Profile a model: one of `pipebench list models`; with the profiler {MEASURING_PROFILER} also
./file.py:function or package.module:function, and torchvision's and transformers' models by name, such as
bert or torchvision:{EXAMPLE_MODEL}.

A measurement that is stopped goes on where it was when it is started again with the same output. Links are
measured inside one machine, and with --nnodes also between machines.
"""


@click.command(help=HELP)
@click.argument("model", required=False, shell_complete=one_of(of_slot("models")))
@click.option(
    "--profiler",
    shell_complete=one_of(of_slot("profilers")),
    default=PROFILER,
    show_default=True,
    help="A profiler, options in brackets.",
)
@click.option("--device", multiple=True, help=f"Device types; for the profiler {MEASURING_PROFILER}: cpu or cuda.")
@click.option("--micro-batches", default="1,2,4,8", show_default=True, help="Sizes to profile, by commas.")
@click.option("--precision", type=OneOf(PRECISIONS), default="fp32", show_default=True, help="Of tensors.")
@click.option(
    "--selective",
    is_flag=True,
    help="Offer each layer of a language model also with the core of its attention recomputed.",
)
@click.option("--links", type=WholeFrom(2), help="In place of a model: measure links of so many devices.")
@launch_options
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The file to write.")
def command(
    model: str | None,
    profiler: str,
    device: tuple[str, ...],
    micro_batches: str,
    precision: str,
    selective: bool,
    links: int | None,
    output: Path,
    **launch: int | str | None,
) -> int:
    """Profile a model, or measure links; HELP says how."""
    from typing import cast

    from pipebench.bench.problems.plugin_sources import known_devices, measured_links, profile_of
    from pipebench.domain.profile import Precision
    from pipebench.formats.clusters import DEFAULT_DEVICE_TYPE
    from pipebench.formats.documents import write_document
    from pipebench.hooks.context import LinkRequest, ProfileRequest
    from pipebench.report.text.profiles import cluster_lines, print_profile

    if (model is None) == (links is None):
        hint = f"such as: pipebench profile {EXAMPLE_MODEL} -o p.json"
        raise PipebenchError("profile takes a model, or --links", hint)
    host, profiler = open_host(), with_launch(profiler, launch)
    if links is not None:
        cluster = measured_links(host, profiler, LinkRequest(links, device[0] if device else "cpu"))
        write_document(output, "cluster", cluster)
        for line in cluster_lines(cluster):
            say(line)
        return 0
    assert model is not None
    known = known_devices(host, profiler)
    named = device or (known[:1] or (DEFAULT_DEVICE_TYPE,))
    scratch = output.with_name(output.name + ".partial")
    if not os.path.isdir(output.parent):
        raise PipebenchError(f"there is no folder {str(output.parent)!r}")
    request = ProfileRequest(
        devices=tuple(_device(name, known) for name in named),
        micro_batches=_sizes(micro_batches),
        precision=cast(Precision, precision),
        selective=selective,
        scratch=str(scratch),
    )
    made = profile_of(host, model, profiler, request, _show_progress)
    write_document(output, "profile", made)
    for left in (scratch, scratch.with_name(f"{scratch.name}.draft")):
        left.unlink(missing_ok=True)
    print_profile(console(), made)
    for note in made.provenance.lines:
        say(f"note: {note}", err=True)
    return 0


def _show_progress(done: float, message: str) -> None:
    """One line each on a terminal; a profiler that measures takes minutes."""
    if sys.stderr.isatty():
        say(f"{done:4.0%}  {message}", err=True)


def _device(name: str, known: tuple[str, ...]) -> "DeviceType":
    """A device type of the table; a profiler that knows devices itself needs no facts, and says which it knows."""
    from pipebench.domain.cluster import DeviceType
    from pipebench.formats.devices import device_names, load_device

    if known and name not in device_names():
        return DeviceType(name=name, memory_bytes=1)
    return load_device(name)


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = sorted({int(part) for part in text.split(",")})
    except ValueError:
        sizes = []
    if not sizes or sizes[0] < 1:
        raise PipebenchError(f"{text!r} are no micro-batch sizes", "write whole numbers from 1, such as 1,2,4")
    return tuple(sizes)
