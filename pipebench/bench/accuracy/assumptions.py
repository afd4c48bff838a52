"""What a source does not say: each choice is written down with what else it could have been."""

from collections.abc import Mapping, Sequence

from pipebench.domain.value import Value


class Assumption(Value, frozen=True, kw_only=True):
    """field: what was not said. value: what is taken. alternatives: what else it could be; each can be run."""

    field: str
    value: str
    alternatives: tuple[str, ...] = ()


class NotExpressed(Exception):
    """A run that the suite cannot express. reason: in a few words, the same for all runs of one kind. detail: the
    figures or names of this run, and what is valid.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail


class Choices:
    """Makes assumptions and keeps them. replaced: values to take in place of the usual ones, by field."""

    def __init__(self, replaced: Mapping[str, str]) -> None:
        self._replaced = replaced
        self._made: dict[str, Assumption] = {}

    @property
    def made(self) -> tuple[Assumption, ...]:
        """All assumptions so far."""
        return tuple(self._made.values())

    def take(self, field: str, usual: str | int, others: Sequence[str | int] = ()) -> str:
        """The value of a field that the source leaves open."""
        value = self._replaced.get(field, str(usual))
        alternatives = tuple(text for text in dict.fromkeys(map(str, (usual, *others))) if text != value)
        self._made[field] = Assumption(field=field, value=value, alternatives=alternatives)
        return value
