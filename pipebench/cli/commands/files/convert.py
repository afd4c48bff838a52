"""pipebench convert: a profile from one file format to another."""

import os

import click

from pipebench.cli.application import open_host
from pipebench.cli.completion import files
from pipebench.cli.parameters import WHOLE
from pipebench.cli.terminal import say


@click.command()
@click.argument("source", metavar="FILE", shell_complete=files)
@click.option(
    "-o", "--output", shell_complete=files, required=True, help="The file to write; its end names the format."
)
@click.option(
    "--to", "name", help="The format to write: piper, tarnawski, layers-json, layers-csv, pipedream, pipebench."
)
@click.option("--device", help="Of several device types, the one to write.")
@click.option("--micro-batch", type=WHOLE, help="Of several profiled sizes, the one to write.")
@click.option("--devices", "-n", type=WHOLE, help="For a file that names a setting: number of devices.")
@click.option("--memory", help="For a file that names a setting: memory of each device, such as 16GB.")
@click.option("--bandwidth", help="For a file that names a setting: bandwidth, such as 25GB/s.")
@click.option("--mini-batch", type=WHOLE, help="For a file that names a setting: samples for one weight update.")
def command(
    source: str,
    output: str,
    name: str | None,
    device: str | None,
    micro_batch: int | None,
    devices: int | None,
    memory: str | None,
    bandwidth: str | None,
    mini_batch: int | None,
) -> int:
    """Write a profile in another format; FILE may have options of its format: gnmt.json[units=ms].

    What was assumed in reading, and what the new format cannot carry, is told on stderr.
    """
    from pipebench.bench.problems.plugin_sources import plugin_formats
    from pipebench.formats.files import write_file
    from pipebench.formats.profiles.files import read_profile, write_profile
    from pipebench.formats.profiles.parts import only, with_setting
    from pipebench.formats.profiles.shipped import load_profile, profile_names
    from pipebench.formats.quantities import parse_bandwidth, parse_bytes
    from pipebench.hooks.syntax import parse_reference

    reference = parse_reference(source)
    if reference.name in profile_names() and not reference.options and not os.path.exists(reference.name):
        profile = load_profile(reference.name)
    else:
        others = plugin_formats(open_host())
        profile = read_profile(reference.name, reference.options, known=profile_names(), others=others)
    profile = with_setting(
        only(profile, device, micro_batch),
        devices=devices,
        memory_bytes=None if memory is None else parse_bytes(memory),
        bandwidth_bytes_s=None if bandwidth is None else parse_bandwidth(bandwidth),
        mini_batch=mini_batch,
    )
    file = write_profile(profile, output, name)
    write_file(output, file.data)
    for note in profile.provenance.lines:
        say(f"read: {note}", err=True)
    for what in file.lost:
        say(f"not carried: {what}", err=True)
    return 0
