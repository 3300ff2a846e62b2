"""Plain data about what a model looked at, and the pages and text that show it."""

from regard.viewer.document import Document
from regard.viewer.example import (
    AttentionMap,
    Change,
    Example,
    GoldLinks,
    Importance,
    LayerSummary,
    Line,
    Token,
    View,
)
from regard.viewer.packing import Packed, pack, pack_integers
from regard.viewer.page import page
from regard.viewer.search import Search
from regard.viewer.terminal import draw_text

__all__ = [
    "AttentionMap",
    "Change",
    "Document",
    "Example",
    "GoldLinks",
    "Importance",
    "LayerSummary",
    "Line",
    "Packed",
    "Search",
    "Token",
    "View",
    "draw_text",
    "pack",
    "pack_integers",
    "page",
]
