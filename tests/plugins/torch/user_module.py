"""A module as a user would bring it: ids in, two branches, a skip, an in-place activation, a mask."""

import torch
from torch import Tensor, nn

SEQUENCE, WIDTH = 6, 16


class Branches(nn.Module):
    """Embedding, attention beside a feed-forward part, sum, head."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.table = nn.Embedding(11, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.table(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(dim=1))

    def example_inputs(self, samples: int) -> dict[str, Tensor]:
        return {"ids": torch.zeros(samples, SEQUENCE, dtype=torch.long)}


class Layer(nn.Module):
    """Two ways from its input to its output."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.inner = nn.Linear(WIDTH, 2 * WIDTH)
        self.act = nn.ReLU(inplace=True)
        self.outer = nn.Linear(2 * WIDTH, WIDTH)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        mask = torch.ones(SEQUENCE, SEQUENCE, dtype=torch.bool, device=x.device).triu(1)
        attended, _ = self.attention(y, y, y, attn_mask=mask, need_weights=False)
        return x + self.drop(attended) + self.outer(self.act(self.inner(y)))


def build(layers: int = 2) -> nn.Module:
    """The module."""
    return Branches(layers)


class Tied(nn.Module):
    """An embedding whose table the head uses again."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, WIDTH)
        self.inner = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 11, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids: Tensor) -> Tensor:
        made: Tensor = self.head(self.inner(self.table(ids)))
        return made

    def example_inputs(self, samples: int) -> dict[str, Tensor]:
        return {"ids": torch.zeros(samples, SEQUENCE, dtype=torch.long)}


def tied() -> nn.Module:
    """A module with one table for two uses."""
    return Tied()


def without_inputs() -> nn.Module:
    """A module that does not say what it is called with."""
    return nn.Linear(2, 2)


def no_module() -> int:
    """Not a module."""
    return 3
