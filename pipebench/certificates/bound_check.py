"""Whether a proof of a lower bound on time holds. This file imports nothing: it can be read and run alone.

A proof is a dict of whole numbers, as `pipebench.bounds.proof.TimeProof.document` makes it:

claimed_ns: no plan takes less, says the proof.
devices, memory_bytes, every_ns: the devices of a plan, the memory of all of them together, and the ns that each
device runs once a mini-batch whatever it holds.
tables: each a list of rows; a row is a way to run an operator with its devices, compute_ns, crossing_ns, update_ns,
forward_ns, round_ns, state_bytes, saved_bytes and own_byte_ns (`pipebench.bounds.choices.COLUMNS`).
operators: for each operator the number of its table.
edges: pairs (before, behind) of operators.
visits: pairs (operator, kind) in the order in which operators are counted; kind 0: an operator of the path, with all
that it costs; kind 1: another operator, without what kind 2 counts; kind 2: its devices, update and state.
waits: whether devices wait for their first operator; where 0 there is no kind 2, and kind 1 counts all.
share, parts: of the time of all tasks share / parts counts, of that of forwards and input gradients the rest.
byte, byte_parts: the price of a byte is byte / byte_parts ns.
step_bytes, points: saved bytes are looked at from 0 to points x step_bytes, in steps.

The argument is that of docs/explanation/cost-model.md, section 11.
"""

DEVICES, COMPUTE, CROSSING, UPDATE, FORWARD, ROUND, STATE, SAVED, OWN = range(9)
PLACED, SAVES, STARTED = range(3)
FINE = 1 << 16
"""Costs are rounded down to so many parts of a ns, besides those that the price and the share bring with them."""
Document = dict[str, object]


def flaw_of_bound(proof: dict) -> str:
    """What is wrong with a proof; "" when it holds: then no plan that the tables describe takes less than claimed.

    Raises KeyError, TypeError or IndexError for what is no proof at all.
    """
    return _flaw_of_form(proof) or _flaw_of_order(proof) or _flaw_of_sum(proof)
