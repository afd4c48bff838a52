"""Shapes of attention: which keys a query sees, and queries, keys and values that pass a product of low rank."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipebench.costs.shapes.products import Product


def seen_pairs(sequence: int, window: int = 0, chunk: int = 0) -> float:
    """Pairs of a query and a key that it sees under a causal mask; a token and itself are half a pair.

    So a whole sequence has s^2 / 2, as models of attention count it. window: of the last tokens, itself among them
    (Beltagy et al. 2020, Longformer, section 3.1); 0: all. chunk: of parts of so many tokens, none of which sees
    another one; 0: one part.
    """
    if chunk:
        whole, rest = divmod(sequence, chunk)
        return (whole * chunk**2 + rest**2) / 2
    if window and window < sequence:
        return sequence * window - (window * (window - 1) + sequence) / 2
    return sequence**2 / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1).

    query_rank: to which queries are projected down, 0 for a product of full rank. key_rank: to which keys and
    values are, together. rotated: features of a head that are rotated; of keys all heads share these. value: width
    of a head's value.
    """

    query_rank: int
    key_rank: int
    rotated: int
    value: int

    @property
    def ranks(self) -> int:
        """Width of what is normed between the products."""
        return self.query_rank + self.key_rank

    def gathered(self, hidden: int) -> int:
        """Elements of a token that tensor-parallel ranks gather before the products that are split.

        Megatron-LM's `MLASelfAttention`: each projects its part of the sequence down, with whole weights.
        """
        return (self.query_rank or hidden) + self.key_rank + self.rotated

    @property
    def up_products(self) -> tuple[str, ...]:
        """Names of the products whose results are queries, keys and values."""
        return "query_up" if self.query_rank else "query", "key_up"

    def products(self, tokens: float, hidden: int, heads: int, head: int) -> tuple[Product, ...]:
        """Those before attention. head: width of a query and of a key, the rotated features among them."""
        queries = [Product("query", tokens, hidden, heads * head)]
        if self.query_rank:
            queries = [
                Product("query_down", tokens, hidden, self.query_rank, split=False, by_tokens=True),
                Product("query_up", tokens, self.query_rank, heads * head),
            ]
        down = Product("key_down", tokens, hidden, self.key_rank + self.rotated, split=False, by_tokens=True)
        up = Product("key_up", tokens, self.key_rank, heads * (head - self.rotated + self.value))
        return (*queries, down, up)


LATENT = ("query_rank", "key_rank", "rotated", "value")
"""Fields of Latent; an operator has them as attributes, `latent_` before each."""


def latent_attributes(latent: Latent | None) -> dict[str, int]:
    """What an operator says of them."""
    return {} if latent is None else {f"latent_{name}": getattr(latent, name) for name in LATENT}


def latent_of(attributes: Mapping[str, int]) -> Latent | None:
    """None where keys and values are of full rank."""
    if not attributes.get("latent_key_rank"):
        return None
    return Latent(**{name: attributes.get(f"latent_{name}", 0) for name in LATENT})
