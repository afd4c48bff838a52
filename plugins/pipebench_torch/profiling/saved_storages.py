"""Bytes that operators keep for their backward, and on a card scratch memory while they run."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor


class SavedStorages:
    """Each storage once, charged to the first operator that keeps it. saved, workspace: bytes by operator; the
    latter is what an operator takes for a while, in either direction, above what there is before it or after.
    """

    def __init__(self, operators: int, weights: Iterable[Tensor], device: torch.device) -> None:
        """weights: kept anyway."""
        self.saved = [0] * operators
        self.workspace = [0] * operators
        self._seen = {weight.untyped_storage().data_ptr() for weight in weights}
        self._held: list[Tensor] = []
        self._cuda = device.type == "cuda"
        self._running: tuple[int, int] | None = None

    def watch(self, operator: int, work: Callable[[], dict[int, Tensor]]) -> dict[int, Tensor]:
        """What the work makes; what autograd keeps of it is counted, and on a card what it needs for a while."""
        self.turn_to(operator)
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: self._keep(operator, tensor), lambda t: t):
            made = work()
        self.turn_to(None)
        return made

    def turn_to(self, operator: int | None) -> None:
        """An operator's part of a direction begins (None: of nobody), and that of the one before it ends. The
        allocator of a card tells its peak without waiting for the card.
        """
        if not self._cuda:
            return
        now = torch.cuda.memory_allocated()
        if self._running is not None:
            last, before = self._running
            scratch = torch.cuda.max_memory_allocated() - max(before, now)
            self.workspace[last] = max(self.workspace[last], scratch)
        torch.cuda.reset_peak_memory_stats()
        self._running = None if operator is None else (operator, now)

    def _keep(self, operator: int, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._seen:
            self._seen.add(storage.data_ptr())
            self._held.append(tensor)  # so that no other storage takes its address
            self.saved[operator] += storage.nbytes()
        return tensor
