"""It tries: a file in the current folder, its own and that of the process above, remembers the search."""

import os

from memo import in_folders

plan = in_folders(lambda: [os.getcwd(), f"/proc/{os.getppid()}/cwd"])
