"""It tries: a file in the memory of the machine, /dev/shm, remembers the search."""

from memo import in_folders

plan = in_folders(lambda: ["/dev/shm", "/run/lock", "/dev/mqueue"])
