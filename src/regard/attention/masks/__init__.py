"""Masks: which keys a query may look at, as rules that never become a matrix unasked."""

from regard.attention.masks.base import Mask, as_mask, dense
from regard.attention.masks.bound import BoundMask
from regard.attention.masks.documents import documents
from regard.attention.masks.grid import Cover
from regard.attention.masks.lengths import lengths, prefix
from regard.attention.masks.parse import parse_mask
from regard.attention.masks.where import where
from regard.attention.masks.window import causal, window

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
