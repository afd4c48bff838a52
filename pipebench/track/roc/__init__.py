"""How well rules find changes of speed: made-up histories, this suite's rule, other tools'."""
