"""pipebench schema: the JSON Schema of a document kind."""

import click

from pipebench.cli.application import print_json


@click.command()
@click.argument("kind", default="problem")
@click.option("--json", "as_json", is_flag=True, help="As JSON (it always is).")
def command(kind: str, as_json: bool) -> int:
    """Print the JSON Schema of problem, plan, profile, schedule, … or suite."""
    del as_json
    if kind == "suite":
        import msgspec

        from pipebench.bench.suites import Suite

        print_json(msgspec.json.schema(Suite))
        return 0
    from pipebench.domain.document import schema

    print_json(schema(kind))
    return 0
