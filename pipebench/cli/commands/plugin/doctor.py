"""pipebench plugin doctor: what is broken, and the command that mends it."""

from dataclasses import asdict

import click

from pipebench.cli.terminal import print_json, say
from pipebench.domain.errors import ExitCode


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(as_json: bool) -> int:
    """Examine every plugin: does it load, do its components, is what it needs installed, is it light?

    Each thing that is wrong stands with the command that mends it. Exit code 1 when something is wrong.
    """
    from pipebench.hooks.discovery import installed_entry_points
    from pipebench.hooks.doctor import examine
    from pipebench.hooks.inventory import inventory

    listed = inventory(installed_entry_points())
    found = examine(listed)
    if as_json:
        print_json({"plugins": len(listed), "ailments": [asdict(each) for each in found]})
    else:
        for each in found:
            say(f"{each.plugin}: {each.what}\n    {each.remedy}")
        components = sum(len(names) for entry in listed for names in entry.slots.values())
        say(f"{len(listed)} plugins, {components} components: {len(found) or 'nothing'} wrong")
    return ExitCode.CONDITION_FAILED if found else ExitCode.OK
