"""What is installed: the catalogue of plugins, what each costs and does, and what mends it."""
