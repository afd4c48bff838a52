"""pipebench track ack: a change that is meant to be."""

from pathlib import Path

import click

from pipebench.cli.commands.track.options import acknowledged_file, acknowledged_option, history_option
from pipebench.cli.terminal import say
from pipebench.domain.errors import PipebenchError, unknown


@click.command()
@click.argument("events", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All that are open.")
@click.option("--reason", required=True, help="Why the change is meant to be.")
@history_option
@acknowledged_option
def command(events: tuple[str, ...], every: bool, reason: str, history: Path, acknowledged: Path | None) -> int:
    """Acknowledge EVENTS, by the eight letters that the report shows: a check no longer fails because of them.

    The file is to be committed: it says who accepted what, and why.
    """
    from pipebench.bench.store.stored_rows import now
    from pipebench.track.judgement.acknowledgements import (
        Acknowledgement,
        acknowledge,
        read_acknowledged,
        refusal,
    )
    from pipebench.track.judgement.judgement import judge, require_nights
    from pipebench.track.nights.history import open_history

    if bool(events) == every:
        raise PipebenchError("name events, or --all of them", "`pipebench track report` shows them")
    file = acknowledged_file(history, acknowledged)
    known = read_acknowledged(file)
    judgement = judge(open_history(history), known)
    require_nights(judgement)
    there = {event.identity: event for event in judgement.events}
    opened = {name: event for name, event in there.items() if event.fails}
    for name in events:
        if name not in there:
            raise unknown("open event", name, opened)
        if name not in opened:
            listed = f"open: {', '.join(opened)}" if opened else "nothing is open"
            raise PipebenchError(f"event {name!r} {refusal(there[name], known)}", listed)
    chosen = list(opened) if every else list(dict.fromkeys(events))
    if not chosen:
        say("nothing is open", err=True)
        return 0
    about = {name: f"{event.subject}: {event.kind}, {event.told[:10]}" for name, event in opened.items()}
    added = [Acknowledgement(event=name, reason=reason, about=about[name], at=now()) for name in chosen]
    acknowledge(file, added)
    say(f"{len(added)} acknowledged in {file}: commit it", err=True)
    return 0
