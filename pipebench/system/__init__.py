"""What commands ask of the operating system: files, folders, processes that end together."""
