"""Plain data about what a model looked at, and the pages and text that show it."""

from regard.viewer.document import Document
from regard.viewer.example import (
    AttentionMap,
    Change,
    Choice,
    Example,
    GoldLinks,
    Hypothesis,
    Importance,
    LayerSummary,
    Line,
    Step,
    Token,
    View,
)
from regard.viewer.packing import Packed, pack, pack_integers
from regard.viewer.page import page
from regard.viewer.terminal import draw_text

__all__ = [
    "AttentionMap",
    "Change",
    "Choice",
    "Document",
    "Example",
    "GoldLinks",
    "Hypothesis",
    "Importance",
    "LayerSummary",
    "Line",
    "Packed",
    "Step",
    "Token",
    "View",
    "draw_text",
    "pack",
    "pack_integers",
    "page",
]
