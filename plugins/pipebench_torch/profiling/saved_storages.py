"""Bytes that operators keep for their backward, and scratch memory while they run."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor


class SavedStorages:
    """Each storage once, charged to the first operator that keeps it. saved, workspace: bytes by operator."""

    def __init__(self, operators: int, weights: Iterable[Tensor], device: torch.device) -> None:
        """weights: kept anyway."""
        self.saved = [0] * operators
        self.workspace = [0] * operators
        self._seen = {weight.untyped_storage().data_ptr() for weight in weights}
        self._held: list[Tensor] = []
        self._cuda = device.type == "cuda"

    def watch(self, operator: int, work: Callable[[], dict[int, Tensor]]) -> dict[int, Tensor]:
        """What the work makes; what autograd keeps of it is counted, and on a card what it needs for a while."""
        if self._cuda:
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: self._keep(operator, tensor), lambda t: t):
            made = work()
        if self._cuda:
            held = torch.cuda.memory_allocated() - before
            self.workspace[operator] = max(0, torch.cuda.max_memory_allocated() - before - held)
        return made

    def _keep(self, operator: int, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._seen:
            self._seen.add(storage.data_ptr())
            self._held.append(tensor)  # so that no other storage takes its address
            self.saved[operator] += storage.nbytes()
        return tensor
