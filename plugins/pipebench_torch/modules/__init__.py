"""What is computed: operators of known kinds, and modules that torch captures."""
