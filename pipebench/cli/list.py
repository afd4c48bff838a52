"""pipebench list: what there is in one slot."""

import click

from pipebench.cli.application import open_host, print_json, show_new_warnings
from pipebench.hooks.descriptors import SLOTS

FILES = ("clusters", "profiles", "suites")


@click.command()
@click.argument("what", type=click.Choice([*SLOTS, *FILES]), default="planners")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(what: str, as_json: bool) -> int:
    """List planners (the default), another slot, or the clusters, profiles and suites that ship."""
    if what in FILES:
        entries = [{"name": name} for name in _names(what)]
    else:
        host = open_host()
        entries = [
            {
                "name": name,
                "summary": registered.component.summary,
                "provider": f"{registered.provider.distribution} {registered.provider.version}",
            }
            for name, registered in host.slot(what).items()
        ]
        if what == "formats":
            from pipebench.formats.profile_file import FORMATS

            entries = [{"name": f.name, "summary": f.summary, "provider": "built in"} for f in FORMATS] + entries
        show_new_warnings(host)
    if as_json:
        print_json(entries)
        return 0
    width = max((len(entry["name"]) for entry in entries), default=0)
    for entry in entries:
        click.echo(f"{entry['name']:<{width}}  {entry.get('summary', '')}".rstrip())
    return 0


def _names(what: str) -> list[str]:
    if what == "clusters":
        from pipebench.formats.cluster import cluster_names

        return cluster_names()
    if what == "profiles":
        from pipebench.formats.profiles import profile_names

        return profile_names()
    from pipebench.bench.suites import suite_names

    return suite_names()
