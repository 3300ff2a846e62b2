"""Attention on PyTorch: use it, train it, look inside it."""

__version__ = "0.1.0"
