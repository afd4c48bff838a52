"""pipebench glossary: what the words mean."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from pipebench.cli.completion import glossary_words, one_of
from pipebench.cli.terminal import print_json, say, width

if TYPE_CHECKING:
    from pipebench.documents.glossary import Subject, Term

INDENT = "  "


@click.command()
@click.argument("word", nargs=-1, shell_complete=one_of(glossary_words))
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(word: tuple[str, ...], as_json: bool) -> int:
    """Explain WORD: a term, or a field of a row such as class_bound_s. Without WORD: all terms by subject."""
    from pipebench.documents.glossary import find_term, subjects

    if not word:
        if as_json:
            print_json(subjects())
        else:
            _print_all(subjects())
        return 0
    term = find_term(" ".join(word))
    if as_json:
        print_json(term)
    else:
        _print(term)
    return 0


def _print_all(subjects: "Sequence[Subject]") -> None:
    """A line for each term: its name and as much of its first sentence as there is room for."""
    longest = max(len(term.name) for subject in subjects for term in subject.terms)
    room = max(width() - len(INDENT) - longest - 2, 20)
    for number, subject in enumerate(subjects):
        say(subject.name if number == 0 else f"\n{subject.name}")
        for term in subject.terms:
            said = textwrap.shorten(term.first_sentence, room, placeholder=" …", break_on_hyphens=False)
            say(f"{INDENT}{term.name:<{longest}}  {said}")
    say("\nAll of a term: pipebench glossary WORD")


def _print(term: "Term") -> None:
    say(term.name)
    _print_wrapped(term.text)
    for heading, listed in (("also", term.also), ("fields", term.fields), ("see", term.see)):
        if listed:
            _print_wrapped(f"{heading}: {', '.join(listed)}")


def _print_wrapped(text: str) -> None:
    """Lines as wide as the terminal, no word split."""
    plain = text.replace("`", "")
    filled = textwrap.fill(
        plain,
        width(),
        initial_indent=INDENT,
        subsequent_indent=INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
    say(filled)
