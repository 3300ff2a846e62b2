"""Plain data about the attention of a model, and the pages and text that show it."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.viewer.circuits import HeadCircuit as HeadCircuit
    from regard.viewer.circuits import StrongNeuron as StrongNeuron
    from regard.viewer.document import Document as Document
    from regard.viewer.document import beside as beside
    from regard.viewer.drawing import draw_attention as draw_attention
    from regard.viewer.drawing import draw_examples as draw_examples
    from regard.viewer.drawing import draw_text as draw_text
    from regard.viewer.example import Change as Change
    from regard.viewer.example import Example as Example
    from regard.viewer.example import GoldLinks as GoldLinks
    from regard.viewer.example import HeadMap as HeadMap
    from regard.viewer.example import Importance as Importance
    from regard.viewer.example import Prediction as Prediction
    from regard.viewer.example import Token as Token
    from regard.viewer.example import View as View
    from regard.viewer.html import page as page
    from regard.viewer.image import Image as Image
    from regard.viewer.image import draw_image as draw_image
    from regard.viewer.image import in_patches as in_patches
    from regard.viewer.layer_summary import HeadLines as HeadLines
    from regard.viewer.layer_summary import HeadVectors as HeadVectors
    from regard.viewer.layer_summary import LayerSummary as LayerSummary
    from regard.viewer.layer_summary import Lens as Lens
    from regard.viewer.notebook import NotebookPage as NotebookPage
    from regard.viewer.notebook import show as show
    from regard.viewer.options import LookOptions as LookOptions
    from regard.viewer.packing import PackedArray as PackedArray
    from regard.viewer.packing import pack as pack
    from regard.viewer.packing import pack_integers as pack_integers
    from regard.viewer.parts import OneAttention as OneAttention
    from regard.viewer.search import SearchTree as SearchTree
    from regard.viewer.stream import LogitSum as LogitSum
    from regard.viewer.stream import ScoreSum as ScoreSum
    from regard.viewer.stream import StreamSums as StreamSums
    from regard.viewer.summaries import example_of as example_of
    from regard.viewer.summaries import watched_rows as watched_rows
    from regard.viewer.texts import Text as Text
    from regard.viewer.texts import in_one_line as in_one_line

__getattr__ = _names(__name__, __file__)
