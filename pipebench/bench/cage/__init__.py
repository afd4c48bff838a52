"""Code of plugins in child processes of their own: their catalogue, and every call of a hook but a search."""
