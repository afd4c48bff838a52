"""Plans in the words of training frameworks: what is written, what it is worth, what comes nearest."""
