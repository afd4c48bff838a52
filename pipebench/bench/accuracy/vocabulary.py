"""The vocabulary of sources that do not say it, by the sizes that they name their models by."""

import re
from collections.abc import Sequence

from pipebench.bench.accuracy.run import Run
from pipebench.bench.accuracy.sizes import architecture_of, public_sizes

USUAL_VOCABULARIES = (50257, 51200, 32000)
"""Entries of the tables of GPT-2, of Megatron-LM's papers, and of Llama's tokenizer; the first is most usual."""
_STATED = re.compile(r"(?<![\w.])(\d{1,4})(?:\.(\d{1,3}))?([bm])(?![\w.])")
_UNITS = {"b": 10**9, "m": 10**6}


def vocabulary_by_source(runs: Sequence[Run]) -> dict[str, int]:
    """For each source the vocabulary that is taken where its runs say none.

    A source trains with one tokenizer, and a model that it calls gpt-14.6B has 14.55 to 14.65 billion parameters.
    Of the usual vocabularies the first that agrees with the names of all its models is taken; the most usual one
    where none does, or where names state no size.
    """
    by_source: dict[str, list[Run]] = {}
    for run in runs:
        by_source.setdefault(run.source, []).append(run)
    return {source: _first_that_agrees(of) for source, of in by_source.items()}


def gpt_parameters(layers: int, hidden: int, vocab: int, seq: int) -> int:
    """Parameters of a GPT-2 of this shape: weights, biases and norms of the layers, the last norm, and the tables
    of words and positions; the head shares the table of words (Radford et al. 2019).
    """
    return layers * (12 * hidden**2 + 13 * hidden) + 2 * hidden + (vocab + seq) * hidden


def _first_that_agrees(runs: Sequence[Run]) -> int:
    for vocab in USUAL_VOCABULARIES:
        if all(_agrees(run, vocab) for run in runs):
            return vocab
    return USUAL_VOCABULARIES[0]


def _agrees(run: Run, vocab: int) -> bool:
    """Whether the parameters are those of the model's name, to its last digit; true where either is not said."""
    stated = _STATED.search(run.model.lower())
    known = run.vocab is not None or public_sizes(run.model) or architecture_of(run.model) != "gpt2"
    if stated is None or known or run.layers is None or run.hidden is None or run.seq is None:
        return True
    whole, decimals, unit = stated[1], stated[2] or "", _UNITS[stated[3]]
    digit = int(unit // 10 ** len(decimals))
    named = int(whole + decimals) * digit
    return 2 * abs(gpt_parameters(run.layers, run.hidden, vocab, run.seq) - named) <= digit
