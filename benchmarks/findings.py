"""Tables and sentences of docs/heads.md and docs/reasons.md, in both languages, from the records.

A page marks their places: ``<!-- record: NAME -->`` and ``<!-- end -->``. Sentences stand in
``findings.toml``, with names of numbers in braces.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import getitem
from pathlib import Path
from statistics import fmean
from typing import Any

PAGES = ("docs/heads.md", "docs/heads.zh.md", "docs/reasons.md", "docs/reasons.zh.md")
LEAST = 50  # words of a relation in the test part for it to be listed
NAMED = 0.25  # of a head's attention, for it to be counted as a head of that kind
SENTENCES: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)
_NOT_MEASURED = ("Not measured since its script changed.", "脚本改动后还没有重测。")
_BETWEEN_LINES = {"en": " ", "zh": ""}
_PLACE = re.compile(r"(<!-- record: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_NAMES = {
    "random": ("a random order", "随机顺序"),
    "attention": ("attention of the query", "查询的注意力"),
    "attention of the last layer": ("times that of the last layer", "乘上最后一层的注意力"),
    "rollout": ("times rollout", "乘上 rollout"),
    "attention_gradient": ("attention × gradient", "注意力 × 梯度"),
    "gradient_times_input": ("gradient × input", "梯度 × 输入"),
    "integrated_gradients": ("integrated gradients", "积分梯度"),
    "leave_one_out": ("leave one out", "逐个去掉"),
}
_KINDS = {
    "previous": ("previous token", "前一个词元"),
    "next": ("next token", "后一个词元"),
    "same": ("itself", "自己"),
    "duplicate": ("equal tokens before", "前面相同的词元"),
    "first": ("the first mark, `[CLS]`", "开头的标记 `[CLS]`"),
    "last": ("the last mark, `[SEP]`", "末尾的标记 `[SEP]`"),
    "punctuation": ("punctuation", "标点"),
    "comma": ("commas", "逗号"),
}
_DIRECTIONS = {
    "to": ("dependent → head", "从属词 → 中心词"),
    "from": ("head → dependent", "中心词 → 从属词"),
}


def line(cells: Iterable[str]) -> str:
    """A row of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def filled(text: str, blocks: Mapping[str, Sequence[str]], language: int) -> str:
    """A page with the blocks that it names, in the place of what was there."""

    def block(place: re.Match[str]) -> str:
        says = blocks.get(place[2], _NOT_MEASURED)[language]
        return f"{place[1]}{says}\n{place[3]}"

    return _PLACE.sub(block, text)


def blocks(records: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Every block by its name, in English and Chinese, of the records there are."""
    details = {record["name"]: record["details"] for record in records}
    made = dict[str, tuple[str, ...]]()
    numbers = dict[str, Any]()
    if "heads" in details:
        numbers |= _of_heads(details["heads"])
        for name, table in {"kinds": _kinds, "relations": _relations, "readers": _readers}.items():
            made[name] = tuple(table(details["heads"], language) for language in range(2))
    if "reasons" in details:
        runs = [each["part"] for each in details["reasons"].values()]
        numbers |= _of_reasons(runs)
        made["methods"] = tuple(_methods(runs, language) for language in range(2))
    for name, says in SENTENCES.items():
        try:
            made[name] = tuple(
                between.join(says[language].format_map(numbers).strip().splitlines())
                for language, between in _BETWEEN_LINES.items()
            )
        except KeyError:  # of a record that there is not
            made[name] = _NOT_MEASURED
    return made


def _table(head: Sequence[str], aligned: str, rows: Iterable[Sequence[str]]) -> str:
    return "\n".join([line(head), aligned, *map(line, rows)])


def _named(layer: int, head: int) -> str:
    return f"{layer + 1}.{head + 1}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def strongest(heads: Mapping[str, Sequence[Sequence[float]]], kind: str) -> tuple[float, int, int]:
    """The head with most weight on keys of a kind: the weight, its layer, its number."""
    return max(
        (weight, layer, head)
        for layer, row in enumerate(heads[kind])
        for head, weight in enumerate(row)
    )


def _readers(details: Mapping[str, Any], language: int) -> str:
    heads = (
        ("reader", "layers × heads", "parameters", "what it read here", "tokens", "licence"),
        ("模型", "层 × 头", "参数", "这里读的文本", "词元", "许可证"),
    )
    texts = {
        "minilm-en": (
            "sentences of EWT's test part, one at a time",
            "EWT 测试部分的句子，每次一句",
        ),
        "roberta-zh": (
            "Chinese news sentences, cut into words by people",
            "人工分好词的中文新闻句子",
        ),
    }
    rows = [
        (
            f"`{name}`",
            f"{each['layers']} × {each['heads']}",
            f"{each['parameters']:,}",
            texts[name][language],
            f"{each['roles']['tokens']:,}",
            each["licence"],
        )
        for name, each in details.items()
    ]
    return _table(heads[language], "|---|---|---:|---|---:|---|", rows)


def _kinds(details: Mapping[str, Any], language: int) -> str:
    heads = (
        ("keys", "English: head", "%", "even", "Chinese: head", "%", "even"),
        ("键", "英文：头", "%", "平均分", "中文：头", "%", "平均分"),
    )
    rows = []
    for kind, words in _KINDS.items():
        cells = [words[language]]
        for each in details.values():
            weight, layer, head = strongest(each["roles"]["heads"], kind)
            even = each["roles"]["even"][kind]
            cells += [_named(layer, head), _percent(weight), _percent(even)]
        rows.append(cells)
    return _table(heads[language], "|---|---|---:|---:|---|---:|---:|", rows)


def _relations(details: Mapping[str, Any], language: int) -> str:
    heads = (
        ("relation", "words", "best head", "direction", "found, %", "best offset", "found, %"),
        ("关系", "词数", "最好的头", "方向", "找对，%", "最好的固定距离", "找对，%"),
    )
    rows = []
    for name, each in details["minilm-en"]["relations"].items():
        if each["words"] < LEAST:
            continue
        label = (
            f"`{name}`"
            if name != "all"
            else ("**all but punctuation**", "**全部，标点除外**")[language]
        )
        rows.append(
            (
                label,
                f"{each['words']:,}",
                _named(each["layer"], each["head"]),
                _DIRECTIONS[each["direction"]][language],
                f"{_percent(each['right'])} ± {_percent(each['error'])}",
                f"{each['offset']:+}".replace("-", "−"),
                _percent(each["offset_right"]),
            )
        )
    return _table(heads[language], "|---|---:|---|---|---:|---:|---:|", rows)


def _of_heads(details: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers that sentences name."""
    numbers = dict[str, Any]()
    for prefix, name in {"e_": "minilm-en", "c_": "roberta-zh"}.items():
        reader = details[name]
        heads = reader["roles"]["heads"]
        pairs = [
            (first + last)
            for one, other in zip(heads["first"], heads["last"], strict=True)
            for first, last in zip(one, other, strict=True)
        ]
        numbers |= {
            f"{prefix}heads": len(pairs),
            f"{prefix}marks": sum(weight >= NAMED for weight in pairs),
            f"{prefix}half": sum(weight >= 0.5 for weight in pairs),
            f"{prefix}texts": f"{reader['roles']['texts']:,}",
        }
        for kind in (*_KINDS, "entropy"):
            weight, layer, head = strongest(heads, kind)
            numbers[f"{prefix}{kind}_head"] = _named(layer, head)
            numbers[f"{prefix}{kind}"] = f"{100 * weight:.0f}"
            numbers[f"{prefix}{kind}_even"] = _percent(reader["roles"]["even"].get(kind, 0))
    relations = details["minilm-en"]["relations"]
    named = {
        name: each for name, each in relations.items() if each["words"] >= LEAST and name != "all"
    }
    shown = [*named.values()]
    widest = max(named, key=lambda name: named[name]["right"] - named[name]["offset_right"])
    behind = [name for name, each in named.items() if each["right"] <= each["offset_right"]]
    it, words = details["minilm-en"]["pronouns"], details["roberta-zh"]["words"]
    inside = details["roberta-zh"]["roles"]["heads"]
    gaps = {
        (
            inside[f"{side} inside"][layer][head] - inside[f"{side} across"][layer][head],
            side,
            layer,
            head,
        )
        for side in ("previous", "next")
        for layer, row in enumerate(inside[f"{side} inside"])
        for head, _ in enumerate(row)
    }
    _, side, layer, head = max(gaps)
    return {
        **numbers,
        "relations": len(shown),
        "widest": widest,
        "widest_right": _percent(named[widest]["right"]),
        "widest_offset": _percent(named[widest]["offset_right"]),
        "behind": ", ".join(f"`{name}`" for name in behind),
        "better": sum(each["right"] > each["offset_right"] for each in shown),
        "higher": sum(each["right"] - each["offset_right"] > 2 * each["error"] for each in shown),
        "used": len({(each["layer"], each["head"]) for each in shown}),
        "all_right": _percent(relations["all"]["right"]),
        "all_offset": _percent(relations["all"]["offset_right"]),
        "all_head": _named(relations["all"]["layer"], relations["all"]["head"]),
        "sentences": it["sentences"],
        "sentence": it["sentence"],
        **{
            f"{direction}_{key}": _percent(it[direction][key])
            for direction in ("to", "from")
            for key in ("right", "person", "thing", "chosen_with", "first_of_all_words")
        },
        "to_head": _named(it["to"]["layer"], it["to"]["head"]),
        "from_head": _named(it["from"]["layer"], it["from"]["head"]),
        "area": _percent(words["area"]),
        "pairs": f"{words['pairs']:,}",
        "word_head": _named(words["layer"], words["head"]),
        "word_side": words["neighbour"],
        "gap_head": _named(layer, head),
        "gap_inside": f"{100 * inside[f'{side} inside'][layer][head]:.0f}",
        "gap_across": f"{100 * inside[f'{side} across'][layer][head]:.0f}",
        "gap_side": {"previous": "before", "next": "after"}[side],
        "gap_side_zh": {"previous": "前", "next": "后"}[side],
        "word_side_zh": {"previous": "前", "next": "后"}[words["neighbour"]],
    }


def _mean(runs: Sequence[Any], *keys: str) -> float:
    return fmean(reduce(getitem, keys, run) for run in runs)


def _correlation(runs: Sequence[Mapping[str, Any]], one: str, other: str) -> float:
    """The mean rank correlation of two methods, whichever of them is named first."""
    name = next(name for name in runs[0]["correlation"] if {*name.split(" & ")} == {one, other})
    return _mean(runs, "correlation", name, "mean")


def _methods(runs: Sequence[Mapping[str, Any]], language: int) -> str:
    heads = (
        ("order", "comprehensiveness", "sufficiency", "rank correlation with leave one out"),
        ("排序依据", "完整性（越大越好）", "充分性（越小越好）", "与“逐个去掉”的等级相关"),
    )
    rows = []
    for name in runs[0]["comprehensiveness"]:
        is_other = name not in ("random", "leave_one_out")
        correlation = f"{_correlation(runs, name, 'leave_one_out'):.2f}" if is_other else "–"
        cells = [
            f"{_mean(runs, measure, name, 'mean'):.3f} ± {_mean(runs, measure, name, 'error'):.3f}"
            for measure in ("comprehensiveness", "sufficiency")
        ]
        rows.append((_NAMES[name][language], *cells, correlation))
    return _table(heads[language], "|---|---:|---:|---:|", rows)


def _of_reasons(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    falls = runs[0]["comprehensiveness"]
    example = runs[0]["examples"][0]
    weights, effects = (example["counts"][name] for name in ("attention", "leave_one_out"))
    order = sorted(range(len(weights)), key=weights.__getitem__, reverse=True)
    telling = max(range(len(effects)), key=lambda place: abs(effects[place]))
    return {
        **{
            f"fall_{name}": f"{_mean(runs, 'comprehensiveness', name, 'mean'):.2f}"
            for name in falls
        },
        "seeds": len(runs),
        "minutes": f"{_mean(runs, 'minutes'):.0f}",
        "epochs": runs[0]["recipe"]["training"]["epochs"],
        "accuracy": f"{_mean(runs, 'accuracy', 'test'):.1f}",
        "bayes": f"{_mean(runs, 'accuracy', 'naive Bayes'):.1f}",
        "correlation": f"{_correlation(runs, 'attention', 'leave_one_out'):.2f}",
        "integrated": f"{_correlation(runs, 'integrated_gradients', 'leave_one_out'):.2f}",
        "texts": runs[0]["texts"],
        "test_texts": runs[0]["test_texts"],
        "same": _percent(_mean(runs, "labels that stay with even weights", "mean")),
        "moved": f"{_mean(runs, 'moved by even weights', 'mean'):.3f}",
        "example": example["text"],
        "label": example["label"],
        "most": example["pieces"][order[0]],
        "most_weight": f"{weights[order[0]]:.2f}",
        "most_effect": f"{effects[order[0]]:.2f}",
        "telling": example["pieces"][telling],
        "telling_effect": f"{effects[telling]:.2f}",
        "telling_weight": f"{weights[telling]:.2f}",
        "telling_rank": order.index(telling) + 1,
        "pieces": len(weights),
    }
