"""The commands of `pipebench`: one module each, named as the command, with a function `command`."""
