"""Plain data about what a model looked at, and the pages and text that show it."""

from regard.viewer.document import (
    AttentionMap,
    Document,
    Example,
    GoldLinks,
    Token,
    View,
)
from regard.viewer.page import page
from regard.viewer.terminal import draw_text

__all__ = [
    "AttentionMap",
    "Document",
    "Example",
    "GoldLinks",
    "Token",
    "View",
    "draw_text",
    "page",
]
