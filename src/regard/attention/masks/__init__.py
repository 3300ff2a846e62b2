"""Masks: which keys a query may look at, as rules that never become a matrix unasked."""

from regard.attention.masks.base import Mask, as_mask, dense
from regard.attention.masks.bound import BoundMask
from regard.attention.masks.grid import Cover
from regard.attention.masks.parse import parse_mask
from regard.attention.masks.rules import causal, documents, lengths, prefix, where, window

__all__ = [
    "BoundMask",
    "Cover",
    "Mask",
    "as_mask",
    "causal",
    "dense",
    "documents",
    "lengths",
    "parse_mask",
    "prefix",
    "where",
    "window",
]
