"""Figures of matplotlib, whose labels may be in any script that a font is installed for."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from regard.errors import SettingError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Fonts with Chinese, of which the first that is installed is used. Some are known by the first
# name of their file alone, which is of another region.
CHINESE_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans SC", "Noto Sans CJK JP"),
    *("Source Han Sans SC", "Source Han Sans CN", "Source Han Sans"),
    *("PingFang SC", "PingFang HK", "Hiragino Sans GB", "Heiti SC", "Heiti TC", "STHeiti"),
    *("Microsoft YaHei", "SimHei", "DengXian", "SimSun"),
    *("WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback"),
    *("Noto Serif CJK SC", "Noto Serif CJK JP", "Source Han Serif SC", "Arial Unicode MS"),
)
_BOX = r"Glyph \d+ .* missing from"


@contextmanager
def new_figure(**options: object) -> "Iterator[Figure]":
    """A figure of matplotlib whose labels may be in Chinese; no setting is changed for others."""
    try:
        from matplotlib import rc_context, rcParams
        from matplotlib.figure import Figure
    except ImportError:
        raise SettingError(
            "matplotlib must be installed to draw; it is not. "
            "Install it: pip install 'regard[plots]'."
        ) from None
    family = [*rcParams["font.family"], *_chinese_font()]
    with warnings.catch_warnings(record=True) as caught, rc_context({"font.family": family}):
        warnings.filterwarnings("always", _BOX)
        yield Figure(layout="constrained", **options)  # type: ignore[arg-type]
    others = [each for each in caught if not re.match(_BOX, str(each.message))]
    for each in others:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    if len(others) < len(caught):
        warnings.warn(
            "some characters are drawn as boxes: no installed font has them. "
            "Install one, such as Noto Sans CJK.",
            stacklevel=3,
        )


def _chinese_font() -> list[str]:
    """The first of ``CHINESE_FONTS`` that is installed, if one is."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    def installed() -> list[str]:
        names = {entry.name for entry in fontManager.ttflist}
        return [name for name in CHINESE_FONTS if name in names][:1]

    if not installed():  # matplotlib keeps a list, of fonts that were there when it first looked
        for path in sorted({*findSystemFonts()} - {entry.fname for entry in fontManager.ttflist}):
            with suppress(OSError, RuntimeError):
                fontManager.addfont(path)
    return installed()
