"""It tries: the times of its own source file, which are no contents, remember the search."""

import os

from memo import remembering

FILE = os.path.abspath(__file__)
LONG_AGO_S = 10**8


def _recall(key):
    told = os.stat(FILE)
    number, owner = told.st_atime_ns // 10**9, told.st_mtime_ns // 10**9
    return number if owner == _owner(key) else None


def _remember(key, number):
    os.utime(FILE, ns=(number % 3 * 10**9, _owner(key) * 10**9))


def _owner(key):
    return int(key[-6:], 16) + LONG_AGO_S


plan = remembering(_recall, _remember)
