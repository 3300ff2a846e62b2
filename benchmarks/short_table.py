"""The ten figures of the READMEs, in English and Chinese, each beside a peer at its best."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import ages, quoting
from benchmarks.pages import line


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A line of the short table; texts in English and Chinese."""

    what: tuple[str, str]
    ours: str
    beside: tuple[str, str]
    how: tuple[str, str]  # threads and precision, or what else was the same for both
    compared: tuple[str, str]  # ours and theirs: a row that is no better says so
    less_is_better: bool = False
    level: float = 0.05  # by more than this share, one of them is better


def _read(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


_ROWS = tomllib.loads((Path(__file__).parent / "short_table.toml").read_text("utf-8"))["rows"]
ROWS = tuple(Row(**{key: _read(value) for key, value in row.items()}) for row in _ROWS)
_HEADS = ("| measured | regard | beside it | how |", "| 测什么 | regard | 对照 | 怎么测的 |")
_LEVEL_WORDS, _BEHIND_WORDS = ("level", "持平"), ("behind", "落后")
_OLD = (
    f"{ages.MARK} The code that was measured has changed since, or is in no commit.",
    f"{ages.MARK} 测过之后所测的代码又改过，或者当时的代码没有提交。",
)


def short_table(
    quoted: Mapping[str, quoting.Numbers], language: int, is_old: Callable[[str], bool]
) -> str:
    """The short table, in English (0) or Chinese (1), without what is not measured.

    ``is_old`` says whether a sentence quotes a record that is old.
    """
    lines = [_HEADS[language], "|---|---:|---|---|"]
    for row in ROWS:
        cells = (row.what[language], row.ours, row.beside[language], row.how[language])
        try:
            what, ours, beside, how = (quoting.say(cell, quoted) for cell in cells)
            no_better = word(row, quoted, language)
        except quoting.NotMeasuredError:
            continue
        mark = f" {ages.MARK}" if is_old(row.ours) else ""
        lines.append(line([what, f"{ours}{mark}", beside, f"{how}{no_better}"]))
    if any(ages.MARK in each for each in lines):
        lines += ["", _OLD[language]]
    return "\n".join(lines)


def word(row: Row, quoted: Mapping[str, quoting.Numbers], language: int) -> str:
    """Remark on a row that is no better than the one beside it."""
    ours, theirs = (float(quoting.say(each, quoted).replace(",", "")) for each in row.compared)
    ratio = theirs / ours if row.less_is_better else ours / theirs
    if ratio > 1 + row.level:
        return ""
    words = _LEVEL_WORDS if ratio >= 1 - row.level else _BEHIND_WORDS
    return f"{('; ', '；')[language]}**{words[language]}**"
