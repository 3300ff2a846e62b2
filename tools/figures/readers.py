"""Figures of what the heads of pretrained readers do, drawn from the record of the benchmark."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from regard.viewer import Document
from tools.figures.drawing import BLUE, GREY, ORANGE, RED, TEAL, Data, Say, matrix, picture, plain

_ROOT = Path(__file__).parents[2]
LEAST = 50  # words of a relation in the test part for it to be drawn
FAINTEST = 0.25  # of a head's attention, for it to be named by what gets it
# Kinds of keys: their letters, colours and names.
KINDS = {
    "marks": ("m", "#90a4ae", ("marks", "标记")),
    "previous": ("p", TEAL, ("previous token", "前一个词")),
    "next": ("n", BLUE, ("next token", "后一个词")),
    "same": ("i", "#8e24aa", ("itself", "自己")),
    "duplicate": ("e", ORANGE, ("equal tokens", "相同的词")),
    "punctuation": ("c", RED, ("punctuation", "标点")),
}


@cache
def found(name: str) -> dict[str, Any]:
    """Findings of the benchmark in a reader: ``python -m benchmarks.heads``."""
    record = _ROOT / "benchmarks" / "records" / "heads.json"
    reader: dict[str, Any] = json.loads(record.read_text("utf-8"))["details"][name]
    return reader


@cache
def page() -> Document:
    """The page of one sentence, which the same command wrote."""
    path = _ROOT / "docs" / "figures" / "course" / "reader.json"
    return Document.from_json(path.read_text("utf-8"))


def tokens() -> list[str]:
    """The sentence's tokens."""
    return [token.text for token in page().examples[0].source_tokens]


@cache
def weights() -> NDArray[np.float64]:
    """The weights of the sentence, (layers, heads, N, N)."""
    rows = [layer.rows for layer in page().examples[0].summaries]
    return np.stack([each.values() for each in rows if each is not None])


def strongest(name: str, kind: str) -> tuple[int, int]:
    """Layer and head with most of a number, over the texts that the benchmark read."""
    values = np.array(found(name)["roles"]["heads"][kind])
    layer, head = np.unravel_index(values.argmax(), values.shape)
    return int(layer), int(head)


def _roles(name: str) -> NDArray[np.float64]:
    """Weights of heads by kind of key, (kinds, layers, heads)."""
    heads = found(name)["roles"]["heads"]
    marks = np.add(heads["first"], heads["last"])
    return np.stack([marks, *(np.array(heads[kind]) for kind in list(KINDS)[1:])])


def _best_relations() -> dict[tuple[int, int], list[str]]:
    """Relations that each head is best at, where it is better than a fixed offset."""
    best: dict[tuple[int, int], list[str]] = {}
    for relation, each in found("minilm-en")["relations"].items():
        if relation != "all" and each["words"] >= LEAST and each["right"] > each["offset_right"]:
            best.setdefault((each["layer"], each["head"]), []).append(relation)
    return best


def _grid(axes: Axes, roles: NDArray[np.float64], say: Say) -> None:
    """A square a head: coloured by the kind of keys that gets most, with how much, in percent."""
    _, layers, heads = roles.shape
    axes.set(xlim=(-0.5, heads - 0.5), ylim=(layers - 0.5, -0.5))
    axes.set_xticks(range(heads), [str(head + 1) for head in range(heads)])
    axes.set_yticks(range(layers), [str(layer + 1) for layer in range(layers)])
    axes.set(xlabel=say("head", "头"), ylabel=say("layer", "层"))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for layer, head in np.ndindex(layers, heads):
        kind = int(roles[:, layer, head].argmax())
        weight = float(roles[kind, layer, head])
        letter, color, _ = list(KINDS.values())[kind]
        is_named = weight >= FAINTEST
        corner = (head - 0.46, layer - 0.46)
        axes.add_patch(
            Rectangle(
                corner,
                0.92,
                0.92,
                facecolor=color if is_named else "#eceff1",
                alpha=0.25 + 0.75 * weight,
            )
        )
        if is_named:
            axes.text(head, layer - 0.14, f"{letter} {100 * weight:.0f}", ha="center", va="center")
    signs = [
        Patch(facecolor=color, label=f"{letter}  {say(*words)}")
        for letter, color, words in KINDS.values()
    ]
    signs.append(Patch(facecolor="#eceff1", label=say("spread widely", "分散")))
    axes.figure.legend(
        handles=signs, loc="outside lower center", ncols=4 if heads > 8 else 3, frameon=False
    )


@picture("reader-grid", 7.4, 4.4, lambda: {"roles": _roles("minilm-en")})
def grid(figure: Figure, data: Data, say: Say) -> None:
    """Each head of the English reader, by what gets most of its attention; relations it finds."""
    axes = figure.add_subplot()
    _grid(axes, data["roles"], say)
    for (layer, head), relations in _best_relations().items():
        words = "\n".join(relations[:2]) + (" …" if len(relations) > 2 else "")
        axes.text(head, layer + 0.22, words, ha="center", va="center", fontsize=4.8)


@picture("reader-grid-chinese", 5.4, 3.4, lambda: {"roles": _roles("roberta-zh")})
def grid_chinese(figure: Figure, data: Data, say: Say) -> None:
    """Each head of the Chinese reader, by what gets most of its attention."""
    _grid(figure.add_subplot(), data["roles"], say)


def _relations() -> Data:
    shown = [each for each in found("minilm-en")["relations"].values() if each["words"] >= LEAST]
    return {
        "head": np.array([each["right"] for each in shown]),
        "error": np.array([each["error"] for each in shown]),
        "offset": np.array([each["offset_right"] for each in shown]),
    }


@picture("reader-relations", 6, 6.4, _relations)
def relations(figure: Figure, data: Data, say: Say) -> None:
    """Relations by their best head and by the best fixed offset."""
    each = found("minilm-en")["relations"]
    names = [name for name, one in each.items() if one["words"] >= LEAST]
    order = np.argsort(data["offset"] - data["head"])[::-1]
    places = np.arange(len(names))
    axes = figure.add_subplot(
        xlabel=say("syntactic heads found, %", "找对的中心词，%"), xlim=(0, 100)
    )
    axes.barh(
        places,
        100 * data["head"][order],
        0.62,
        xerr=100 * data["error"][order],
        color=TEAL,
        ecolor=GREY,
        label=say("best head", "最好的头"),
    )
    axes.plot(
        100 * data["offset"][order],
        places,
        "|",
        color=ORANGE,
        markersize=9,
        markeredgewidth=2.5,
        label=say("best fixed offset", "最好的固定距离"),
    )
    labels = [
        say("all but punctuation", "全部（标点除外）") if names[i] == "all" else names[i]
        for i in order
    ]
    axes.set_yticks(places, labels)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.figure.legend(loc="outside lower center", ncols=2, frameon=False)


def _neighbours() -> Data:
    heads = found("roberta-zh")["roles"]["heads"]
    return {
        f"{side} {where}": np.array(heads[f"{side} {where}"]).ravel()
        for side in ("previous", "next")
        for where in ("inside", "across")
    }


@picture("reader-words", 3.9, 3.4, _neighbours)
def neighbours(figure: Figure, data: Data, say: Say) -> None:
    """Weight on a neighbour of the same word against that on a neighbour of another."""
    axes = figure.add_subplot(
        xlabel=say("across the end of a word, %", "跨过词界，%"), aspect="equal"
    )
    axes.set_ylabel(say("inside a word, %", "词内，%"))
    axes.plot([0, 100], [0, 100], ":", color=GREY, linewidth=0.8)
    signs = {
        "previous": ("o", TEAL, say("character before", "前一个字")),
        "next": ("^", BLUE, say("character after", "后一个字")),
    }
    for side, (mark, color, label) in signs.items():
        across, inside = 100 * data[f"{side} across"], 100 * data[f"{side} inside"]
        axes.plot(across, inside, mark, color=color, alpha=0.7, label=label)
        for number in np.argsort(inside - across)[-2:]:
            layer, head = divmod(int(number), found("roberta-zh")["heads"])
            axes.text(
                across[number] + 3,
                inside[number],
                f"{layer + 1}.{head + 1}",
                fontsize=7,
                va="center",
            )
    axes.legend(frameon=False, loc="lower right")


def four_heads() -> dict[tuple[str, str], tuple[int, int]]:
    """Heads of the English reader, each the strongest of its kind."""
    kinds = {
        "previous": ("previous token", "前一个词"),
        "first": ("the first mark", "开头的标记"),
        "punctuation": ("punctuation", "标点"),
        "entropy": ("everything", "一视同仁"),
    }
    return {words: strongest("minilm-en", kind) for kind, words in kinds.items()}


def _four() -> Data:
    return {"weights": np.stack([weights()[place] for place in four_heads().values()])}


@picture("looking-heads", 7.4, 2.7, _four)
def kinds(figure: Figure, data: Data, say: Say) -> None:
    """Four heads of a reader by what they do, with two numbers that tell them apart."""
    places = np.arange(len(tokens()))
    distance = np.abs(places[:, None] - places)
    panels = zip(figure.subplots(1, 4), data["weights"], four_heads().items(), strict=True)
    for axes, alpha, (words, (layer, head)) in panels:
        matrix(figure, axes, alpha, x="", y="")
        axes.set_title(f"{say(*words)}\n{layer + 1}.{head + 1}", fontsize=8)
        axes.set_xticks(places, tokens(), rotation=90, fontsize=5)
        axes.set_yticks(places, tokens(), fontsize=5)
        axes.tick_params(length=0)
        entropy = -(alpha * np.log(np.maximum(alpha, 1e-12))).sum(axis=-1)
        keys, far = np.exp(entropy).mean(), (alpha * distance).sum(axis=-1).mean()
        axes.set_xlabel(
            say(f"keys {keys:.1f}, distance {far:.1f}", f"键数 {keys:.1f}，距离 {far:.1f}"),
            fontsize=7,
        )


def _heads_of_it() -> list[tuple[int, int]]:
    it = found("minilm-en")["pronouns"]["to"]
    strong = [strongest("minilm-en", kind) for kind in ("previous", "punctuation")]
    return [(it["layer"], it["head"]), *strong]


def _from_it() -> Data:
    at = tokens().index("it")
    return {"weights": np.stack([weights()[layer, head, at] for layer, head in _heads_of_it()])}


@picture("self-words", 6.6, 1.45, _from_it)
def by_word(figure: Figure, data: Data, say: Say) -> None:
    """Weights of *it*, in a red frame, by three heads, the more the darker."""
    words, at = tokens(), tokens().index("it")
    axes = plain(figure.add_subplot(), 1.0 * len(words) + 1.4, 2.6)
    for row, (layer, head) in enumerate(_heads_of_it()):
        y = 2.2 - 0.85 * row
        axes.text(0.9, y, f"{layer + 1}.{head + 1}", ha="right", va="center", color=GREY)
        for place, word in enumerate(words):
            corner, shade = (1.1 + place, y - 0.32), float(data["weights"][row, place])
            axes.add_patch(Rectangle(corner, 0.96, 0.64, facecolor=BLUE, alpha=shade))
            if place == at:
                axes.add_patch(
                    Rectangle(corner, 0.96, 0.64, fill=False, edgecolor=RED, linewidth=1.6)
                )
            ink = "white" if shade > 0.5 else "black"
            axes.text(1.58 + place, y, word, ha="center", va="center", color=ink, fontsize=6.5)
