"""pipebench schema: the JSON Schema of a document kind."""

import click

from pipebench.cli.completion import documents, one_of
from pipebench.cli.terminal import print_json


@click.command()
@click.argument("kind", default="problem", shell_complete=one_of(documents))
@click.option("--json", "as_json", is_flag=True, help="As JSON (it always is).")
def command(kind: str, as_json: bool) -> int:
    """Print the JSON Schema of problem, plan, profile, schedule, … or suite."""
    del as_json
    from pipebench.documents.document import KINDS, schema
    from pipebench.domain.errors import unknown

    if kind == "suite":
        from pipebench.bench.suites import suite_schema

        print_json(suite_schema())
        return 0
    if kind not in KINDS:
        raise unknown("document kind", kind, [*KINDS, "suite"])
    print_json(schema(kind))
    return 0
