"""It tries: files beside its own source and among its compiled modules remember the search."""

import os

from memo import in_folders

HERE = os.path.dirname(os.path.abspath(__file__))

plan = in_folders(lambda: [HERE, os.path.join(HERE, "__pycache__")])
