"""Profiles measured with PyTorch, and plans run by torch.distributed: one process a device."""
