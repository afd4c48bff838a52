"""pipebench plugin doctor: what is broken, and the command that mends it."""

from dataclasses import asdict

import click

from pipebench.cli.terminal import print_json, say
from pipebench.domain.errors import ExitCode


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(as_json: bool) -> int:
    """Examine every plugin: does it load, do its components, is what it needs installed, is it light and quiet?

    Each thing that is wrong stands with the command that mends it, and with what the plugin's author does. Exit
    code 1 when something is wrong. Then what components declare that others may not do (network, variables,
    folders), and what this machine permits.
    """
    from pipebench.bench.cage.inspection import installed_inventory, load_components
    from pipebench.bench.cage.installed import installed_host
    from pipebench.bench.searches.isolation.clock import witness
    from pipebench.bench.searches.isolation.confinement import describe
    from pipebench.hooks.installed.doctor import examine

    listed = installed_inventory()
    installed_host()  # it tells the server which plugin provides what
    found = examine(listed, load_components)
    declared = [f"{entry.provider.distribution}: {line}" for entry in listed for line in entry.declares]
    if as_json:
        told = {"plugins": len(listed), "ailments": [asdict(each) for each in found]}
        print_json({**told, "declared": declared, "confinement": describe(), "witness": witness()})
    else:
        for each in found:
            say(f"{each.plugin}: {each.what}\n    {each.remedy}")
            if each.author:
                say(f"    as its author: {each.author}")
        for line in declared:
            say(f"declared by {line}")
        say(f"plugins run in child processes; {describe()}; CPU time by {witness()}")
        components = sum(len(names) for entry in listed for names in entry.slots.values())
        say(f"{len(listed)} plugins, {components} components: {len(found) or 'nothing'} wrong")
    return ExitCode.CONDITION_FAILED if found else ExitCode.OK
