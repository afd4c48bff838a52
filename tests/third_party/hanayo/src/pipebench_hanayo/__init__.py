"""The scheduler `hanayo` for pipebench."""
