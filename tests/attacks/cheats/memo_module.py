"""It tries: a dictionary of its module remembers the search."""

from memo import remembering

NUMBERS = {}

plan = remembering(NUMBERS.get, NUMBERS.__setitem__)
