"""It tries: a file in the user's home, as the environment and as the system name it, remembers the search."""

import os
import pwd

from memo import in_folders

plan = in_folders(
    lambda: [os.path.expanduser("~/.cache"), os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".cache")]
)
