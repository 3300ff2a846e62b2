"""Plain data about what a model looked at, and the pages and text that show it."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.viewer.document import Document, beside
    from regard.viewer.drawing import draw_attention, draw_examples, draw_text
    from regard.viewer.example import (
        Change,
        Example,
        GoldLinks,
        HeadMap,
        Importance,
        Prediction,
        Token,
        View,
        importances_of,
    )
    from regard.viewer.html import page
    from regard.viewer.image import Image, draw_image
    from regard.viewer.layer_summary import HeadLines, HeadVectors, LayerSummary, Lens
    from regard.viewer.notebook import NotebookPage, show
    from regard.viewer.packing import PackedArray, pack, pack_integers
    from regard.viewer.parts import OneAttention
    from regard.viewer.search import SearchTree
    from regard.viewer.summaries import example_of, watched_rows
    from regard.viewer.texts import Text, in_one_line

__getattr__ = _names(__name__, __file__)

__all__ = [
    "Change",
    "Document",
    "Example",
    "GoldLinks",
    "HeadLines",
    "HeadMap",
    "HeadVectors",
    "Image",
    "Importance",
    "LayerSummary",
    "Lens",
    "NotebookPage",
    "OneAttention",
    "PackedArray",
    "Prediction",
    "SearchTree",
    "Text",
    "Token",
    "View",
    "beside",
    "draw_attention",
    "draw_examples",
    "draw_image",
    "draw_text",
    "example_of",
    "importances_of",
    "in_one_line",
    "pack",
    "pack_integers",
    "page",
    "show",
    "watched_rows",
]
