"""The commands of `pipebench plugin`."""
