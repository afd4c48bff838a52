"""The glossary: the words of the field and of the suite, read from glossary.toml."""

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

import msgspec

from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value


class Term(Value, frozen=True, kw_only=True):
    """An entry of the glossary.

    text: a few sentences; the first stands alone in a list.
    also: other spellings that lead here.
    see: names of related terms.
    fields: fields of a row that the term explains.
    section: heading in docs/explanation/cost-model.md under which the term is defined exactly.
    """

    name: str
    text: str
    also: tuple[str, ...] = ()
    see: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    section: str = ""

    @property
    def first_sentence(self) -> str:
        """The text up to its first full stop, without it, as plain text."""
        return self.text.partition(". ")[0].removesuffix(".").replace("`", "")


class Subject(Value, frozen=True, kw_only=True):
    """Terms that belong together, in the order in which they explain each other."""

    name: str
    terms: tuple[Term, ...]


class _Glossary(Value, frozen=True, kw_only=True):
    subjects: tuple[Subject, ...]


@cache
def subjects() -> tuple[Subject, ...]:
    """All terms by subject."""
    text = files(__package__).joinpath("glossary.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Glossary).subjects


@cache
def _terms_by_word() -> Mapping[str, Term]:
    """Each term under its name, its other spellings and its fields; a name wins over a spelling."""
    terms = [term for subject in subjects() for term in subject.terms]
    found: dict[str, Term] = {}
    for term in terms:
        found.setdefault(term.name, term)
    for term in terms:
        for word in (*term.also, *term.fields):
            found.setdefault(word, term)
    return found


def find_term(word: str) -> Term:
    """The term of a word, in any case.

    Raises PipebenchError with the nearest word for one that leads to no term.
    """
    by_word = _terms_by_word()
    if word in by_word:
        return by_word[word]
    folded: dict[str, Term] = {}
    for each, term in by_word.items():
        folded.setdefault(each.casefold(), term)
    key = " ".join(word.split()).casefold()
    for spelling in (key, key.removesuffix("s")):
        if spelling in folded:
            return folded[spelling]
    close = get_close_matches(key, folded, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise PipebenchError(f"the glossary has no word {word!r}", f"{hint}`pipebench glossary` lists all")
