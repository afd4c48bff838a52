"""pipebench plugin list: what is installed."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from pipebench.cli.terminal import print_json, say

if TYPE_CHECKING:
    from pipebench.hooks.installed.inventory import PluginEntry


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(as_json: bool) -> int:
    """List plugins: distribution, version, hook API, state, CPU time to import, and what each offers.

    The time is beyond what pipebench and the plugins listed before have imported already.
    """
    from pipebench.bench.cage.inspection import installed_inventory

    listed = installed_inventory()
    if as_json:
        print_json([_plain(entry) for entry in listed])
        return 0
    rows = [("plugin", "distribution", "api", "state", "import", "offers"), *map(_row, listed)]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        say("  ".join([*cells, row[5]]).rstrip())
    for entry in listed:
        for trouble in entry.troubles:
            say(f"warning: {trouble}", err=True)
    return 0


def _row(entry: "PluginEntry") -> tuple[str, ...]:
    offers = [f"{len(names)} {slot if len(names) > 1 else slot[:-1]}" for slot, names in entry.slots.items()]
    heavy = f" ({', '.join(entry.heavy)})" if entry.heavy else ""
    waits = f", {entry.import_wall_s:.1f} s of wall time" if entry.waits else ""
    return (
        entry.provider.entry_point,
        f"{entry.provider.distribution} {entry.provider.version}".strip(),
        "-" if entry.api is None else str(entry.api),
        entry.state,
        f"{entry.import_cpu_s * 1e3:.1f} ms{waits}{heavy}",
        ", ".join(offers) or "nothing",
    )


def _plain(entry: "PluginEntry") -> dict[str, Any]:
    names = ("api", "heavy", "module", "state", "slots", "import_cpu_s", "import_wall_s", "modules")
    fields = {name: getattr(entry, name) for name in names}
    return {
        **asdict(entry.provider),
        **fields,
        "troubles": list(map(str, entry.troubles)),
        "declares": entry.declares,
    }
