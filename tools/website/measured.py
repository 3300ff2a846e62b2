"""The page of all figures in Chinese: the same records, the same numbers, said in Chinese."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import ages, measuring, quoting, shipped
from benchmarks.pages import Group, line
from benchmarks.tables import GROUPS, QUOTED

# A heading and a sentence for each group.
CHINESE: Mapping[str, Mapping[str, str]] = tomllib.loads(
    (Path(__file__).parent / "measured.zh.toml").read_text("utf-8")
)
# Patterns of what records say, and what is said for each in Chinese.
_WORDS: list[tuple[str, str]] = tomllib.loads(
    (Path(__file__).parent / "figures.zh.toml").read_text("utf-8")
)["words"]
_INTRO = """\
# 实测数据

每个数都出自 benchmarks/ 里的脚本，脚本会留下记录；对照方在同一时段、
同一台机器上测量，用它最快的线程设置。“还没达到目标”和“不如简单基线”的地方，都如实写明；
▼ 表示不比旁边那个不用模型的基线好；† 表示旧数据：测过之后所测的代码又改过，或者当时的代码没有提交。
每份记录的提交、机器、负载、线程数和轮数，见英文页最后的表。
"""
_NOT_MEASURED = "脚本改动后还没有重测。"
_HEAD = "| 测什么 | regard | 对照 | 说明 | 脚本 |\n|---|---:|---|---|---|"


def pages() -> dict[str, str]:
    """The page, by its place."""
    records = measuring.read_records(measuring.RECORDS)
    quoted = quoting.numbers(records, QUOTED)
    old = ages.old_records(records)
    parts = [_part(one, records, quoted, old) for one in GROUPS]
    return {"measured.zh.md": "\n".join([_INTRO, *parts])}


def _part(
    group: Group,
    records: Sequence[Mapping[str, Any]],
    quoted: Mapping[str, quoting.Numbers],
    old: Sequence[str],
) -> str:
    """A group under the anchor that it has in English, so that links fit both pages."""
    marked = shipped.no_better(records)
    chinese = CHINESE.get(group.title, {"title": group.title, "says": group.says})
    rows = [
        line(
            [
                *map(in_chinese, shipped.cells(figure, marked)),
                f"`{name}`{f' {ages.MARK}' if name in old else ''}",
            ]
        )
        for place in group.figures
        for name in [place.partition(":")[0]]
        for figure in quoting.find(records, place)
    ]
    heading = f"## {chinese['title']} {{#{anchor(group.title)}}}"
    try:
        said = quoting.say(chinese["says"], quoted, holds=group.holds)
    except quoting.NotMeasuredError:
        said = _NOT_MEASURED
    table = "\n".join([_HEAD, *rows]) if rows else ""
    return "\n\n".join(filter(None, (heading, said, table))) + "\n"


def in_chinese(words: str) -> str:
    """A cell of a record with Chinese words and the same numbers."""
    for english, chinese in _WORDS:
        words = re.sub(english, chinese, words)
    return words


def anchor(title: str) -> str:
    """The anchor of a heading, as the builder and forges make it."""
    return title.lower().replace(" ", "-")
