"""The page of all figures in Chinese: the same records, the same numbers, said in Chinese."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import measuring, tables

# A heading and a sentence for each group, and the words around them.
CHINESE: Mapping[str, Any] = tomllib.loads(
    (Path(__file__).parent / "measured.zh.toml").read_text("utf-8")
)
# Patterns of what records say, and what is said for each in Chinese.
_WORDS: list[tuple[str, str]] = tomllib.loads(
    (Path(__file__).parent / "figures.zh.toml").read_text("utf-8")
)["words"]


def pages() -> dict[str, str]:
    """The page, by its place."""
    records = measuring.read_records(measuring.RECORDS)
    return {"measured.zh.md": tables.sections(records, CHINESE, in_chinese)}


def in_chinese(words: str) -> str:
    """A cell of a record with Chinese words and the same numbers."""
    for english, chinese in _WORDS:
        words = re.sub(english, chinese, words)
    return words
