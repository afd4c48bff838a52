"""It tries: a module of the suite, and the function that reads problems, remember the search for it."""

import sys

from memo import remembering

import pipebench.domain.problem

NUMBERS = sys.__dict__.setdefault("_numbers", vars(pipebench.domain.problem).setdefault("_numbers", {}))

plan = remembering(NUMBERS.get, NUMBERS.__setitem__)
