"""Figures of chapter 4: one context or many, the decoder with attention, what it learns."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import nn
from torch.nn import functional as F

import regard as rg
from regard.attention import AttentionCall, at, observe
from regard.layers import AdditiveAttention, BilinearAttention
from regard.models.interfaces import SourceMemory
from regard.models.recurrent_attention import Mixture, Near
from tools.figures.drawing import (
    BLUE,
    GREY,
    ORANGE,
    PALE,
    TEAL,
    Data,
    Say,
    arrow,
    box,
    matrix,
    picture,
    plain,
)  # fmt: skip

# What the translator of ``regard demo`` looked at:
# echo 我爱中国 | regard predict tatoeba-zh-en --attention --output-format jsonl
DEMO: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "docs" / "figures" / "course" / "demo.jsonl").read_text("utf-8")
)
SOURCE, TARGET = DEMO["source_tokens"], DEMO["output_tokens"][:3]  # without the full stop


def _demo() -> Data:
    return {"weights": np.array(DEMO["attention"])}


def _chain(axes: Axes, words: list[str], y: float, color: str, letter: str) -> list[float]:
    """Draw states side by side, each with its word under it, and return where they are."""
    places = [1.0 + 1.3 * place for place in range(len(words))]
    for place, (x, word) in enumerate(zip(places, words, strict=True)):
        box(axes, x, y, f"{letter}{'₁₂₃₄'[place]}", width=0.8, color=color)
        axes.text(x, y - 0.62, word, ha="center", va="center")
        arrow(axes, (x, y - 0.5), (x, y - 0.28))
        if place:
            arrow(axes, (x - 0.88, y), (x - 0.42, y))
    return places


@picture("sequences-one-context", 5, 2.4)
def one_context(figure: Figure, data: Data, say: Say) -> None:
    """All that the decoder gets is one vector."""
    axes = plain(figure.add_subplot(), 8.7, 3.4)
    xs = _chain(axes, SOURCE, 0.9, PALE, "h")
    box(axes, 6.6, 0.9, "c", width=0.6, color=ORANGE, ink="white")
    arrow(axes, (xs[-1] + 0.42, 0.9), (6.27, 0.9), color=ORANGE)
    for x, word in zip((4.8, 6.1, 7.4), TARGET, strict=True):
        box(axes, x, 2.4, word, width=0.9, color=TEAL, ink="white")
        arrow(axes, (6.6, 1.18), (x, 2.12), color=ORANGE)
    axes.text(
        7.2,
        0.9,
        say("the same for every word", "每个词都用同一个"),
        va="center",
        color=GREY,
        fontsize=7,
    )


@picture("sequences-contexts", 5, 2.6, _demo)
def contexts(figure: Figure, data: Data, say: Say) -> None:
    """Each word has a context of its own, a mean of all states by its own weights."""
    axes = plain(figure.add_subplot(), 7.4, 3.9)
    xs = _chain(axes, SOURCE, 0.9, PALE, "h")
    for row, word in enumerate(TARGET):
        x = 2.2 + 1.7 * row
        box(axes, x, 2.3, f"c{'₁₂₃'[row]}", width=0.6, color=ORANGE, ink="white")
        box(axes, x, 3.4, word, width=0.9, color=TEAL, ink="white")
        arrow(axes, (x, 2.58), (x, 3.12))
        for column, start in enumerate(xs):
            weight = float(data["weights"][row, column])
            arrow(axes, (start, 1.18), (x, 2.02), color=ORANGE, width=0.4 + 3 * weight)
    axes.text(6.3, 1.5, say("α: thick is much", "α：越粗越多"), ha="center", color=GREY)


@picture("sequences-bahdanau", 5.4, 3)
def bahdanau(figure: Figure, data: Data, say: Say) -> None:
    """The state before is the query; encoder states are keys and values."""
    axes = plain(figure.add_subplot(), 8, 4.4)
    xs = _chain(axes, SOURCE, 0.9, PALE, "h")
    box(axes, 2.3, 2.3, say("attention", "注意力"), width=1.6, color=ORANGE, ink="white")
    for x in xs:
        arrow(axes, (x, 1.18), (2.3, 2.0))
    axes.text(0.5, 1.6, say("keys, values", "键和值"), ha="center", color=GREY)
    for place, x in enumerate((4.6, 6.6)):
        box(axes, x, 3.4, "s₍ₜ₋₁₎" if not place else "sₜ", width=0.9, color=TEAL, ink="white")
    arrow(axes, (5.08, 3.4), (6.12, 3.4))
    arrow(axes, (4.4, 3.1), (3.13, 2.4), color=BLUE, bend=-0.2)
    axes.text(4.1, 2.55, say("query", "查询"), color=BLUE)
    arrow(axes, (3.13, 2.2), (6.4, 3.1), color=ORANGE, bend=0.2)
    axes.text(5.4, 2.15, say("context cₜ", "上下文 cₜ"), color=ORANGE)
    box(axes, 6.6, 4.1, "yₜ", width=0.9, color=PALE)
    arrow(axes, (6.6, 3.68), (6.6, 3.83))
    box(axes, 6.6, 1.2, "y₍ₜ₋₁₎", width=0.9, color=PALE)
    arrow(axes, (6.75, 1.48), (6.75, 3.1))


class Reverser(nn.Module):
    """A recurrent encoder and decoder that say a sequence backwards; one context or many."""

    def __init__(self, *, has_attention: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(13, 16)
        self.encoder = nn.GRU(16, 16, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(16, 32, batch_first=True)
        self.attention = AdditiveAttention(32, 32, 32) if has_attention else None
        self.out = nn.Linear(64, 13)

    def forward(self, source: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        states, last = self.encoder(self.embed(source))
        self.states, context = states, torch.cat([*last], dim=-1)
        self.queries, _ = self.decoder(self.embed(before), context[None])
        if self.attention is None:
            contexts = context[:, None].expand_as(self.queries)
        else:
            contexts = self.attention(self.queries, self.attention.prepare(states), states)
        out: torch.Tensor = self.out(torch.cat([self.queries, contexts], dim=-1))
        return out


@cache
def _trained(has_attention: bool, *lengths: int) -> tuple[Reverser, torch.Tensor]:
    """A model after 250 updates for each length, and the inputs of the last."""
    torch.manual_seed(0)
    model = Reverser(has_attention=has_attention)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for update in range(250 * len(lengths)):
        source = torch.randint(1, 13, (64, lengths[update % len(lengths)]))
        target = source.flip(1)
        loss = F.cross_entropy(model(source, F.pad(target, (1, -1))).transpose(1, 2), target)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return model, source


def _alignment() -> Data:
    model, source = _trained(True, 10)
    assert model.attention is not None
    with torch.no_grad():
        model(source[:1], F.pad(source[:1].flip(1), (1, -1)))
        queries, keys = model.attention.ask(model.queries), model.attention.prepare(model.states)
        weights = rg.weights(queries, keys, score=model.attention.score(queries.dtype))
    return {"weights": weights[0].numpy()}


@picture("sequences-alignment", 3.6, 2.8, _alignment, is_learned=True)
def alignment(figure: Figure, data: Data, say: Say) -> None:
    """The weights of a model that has learned to say a sequence backwards."""
    x, y = say("input", "输入"), say("output", "输出")
    matrix(figure, figure.add_subplot(), data["weights"], x=x, y=y, bar=say("weight", "权重"))


@picture("sequences-china", 3.8, 2.6, _demo)
def china(figure: Figure, data: Data, say: Say) -> None:
    """The weights of a translator for 我爱中国."""
    x, y = say("input", "输入"), say("output", "输出")
    axes = figure.add_subplot()
    columns, rows = SOURCE, DEMO["output_tokens"]
    matrix(figure, axes, data["weights"], x=x, y=y, numbers=True, columns=columns, rows=rows)


LENGTHS = (4, 8, 12, 16, 20)


def _by_length() -> Data:
    def right(has_attention: bool, length: int) -> float:
        model, _ = _trained(has_attention, *LENGTHS)
        source = torch.randint(1, 13, (256, length), generator=torch.Generator().manual_seed(1))
        guess = model(source, F.pad(source.flip(1), (1, -1))).argmax(-1)
        return float((guess == source.flip(1)).float().mean())

    each = {"one": False, "many": True}
    return {name: np.array([right(has, n) for n in LENGTHS]) for name, has in each.items()}


@picture("sequences-length", 3.8, 2.6, _by_length, is_learned=True)
def by_length(figure: Figure, data: Data, say: Say) -> None:
    """Right outputs against the length of the input, with one context and with many."""
    axes = figure.add_subplot(xlabel=say("length", "长度"), ylabel=say("right outputs", "正确率"))
    axes.plot(LENGTHS, data["one"], ".-", color=GREY, label=say("one c", "一个 c"))
    axes.plot(LENGTHS, data["many"], ".-", color=TEAL, label=say("many", "许多个 c"))
    axes.set_ylim(0, 1.05)
    axes.set_xticks(LENGTHS)
    axes.legend(frameon=False)


class NearReverser(Reverser):
    """A reverser with attention of one step after another: local-p, or Graves' window."""

    def __init__(self, variant: Near | Mixture) -> None:
        super().__init__(has_attention=False)
        self.variant = variant
        self.score = BilinearAttention(32, 32) if isinstance(variant, Near) else None

    def forward(self, source: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        states, last = self.encoder(self.embed(source))
        queries, _ = self.decoder(self.embed(before), torch.cat([*last], dim=-1)[None])
        sizes = torch.full((len(source),), source.shape[1])
        keys = states if self.score is None else self.score.prepare(states)
        memory = SourceMemory(keys, states, sizes, rg.lengths(sizes))
        state, contexts, centres = self.variant.start(memory), [], []
        for query in queries.unbind(1):
            output = self.variant(self.score, query, memory, state)
            state = output.state
            contexts.append(output.context)
            if isinstance(self.variant, Near):
                hidden = self.variant.outer(torch.tanh(self.variant.inner(query)))
                centres.append(source.shape[1] * torch.sigmoid(hidden))
            else:
                centres.append(state.past)
        self.centres = torch.stack(centres, dim=1)
        out: torch.Tensor = self.out(torch.cat([queries, torch.stack(contexts, dim=1)], dim=-1))
        return out


@cache
def _near() -> Data:
    """Weights and centres of local-p that writes backwards, of Graves' window that writes on."""
    data = {}
    for name in ("local", "graves"):
        torch.manual_seed(0)
        is_local = name == "local"
        model = NearReverser(Near(32, 2, is_predictive=True) if is_local else Mixture(32, 2))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(400):
            source = torch.randint(1, 13, (32, 10))
            target = source.flip(1) if is_local else source
            loss = F.cross_entropy(model(source, F.pad(target, (1, -1))).transpose(1, 2), target)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        calls: list[AttentionCall] = []
        with torch.no_grad(), observe(calls.append), at("cross", 0):
            model(source[:1], F.pad(target[:1], (1, -1)))
        data[f"{name} weights"] = torch.stack([call.weights()[0, 0] for call in calls]).numpy()
        data[f"{name} centres"] = model.centres[0].detach().numpy()
    return data


@picture("sequences-near", 6.4, 2.8, _near, is_learned=True)
def near(figure: Figure, data: Data, say: Say) -> None:
    """The weights of local-p and of Graves' window, and where their centres are."""
    titles = {
        "local": say("local-p, writing backwards", "local-p，倒着写"),
        "graves": say("Graves' window, copying", "Graves 的窗，照抄"),
    }
    for (name, title), axes in zip(titles.items(), figure.subplots(1, 2), strict=True):
        x, y = say("input", "输入"), say("output", "输出")
        matrix(figure, axes, data[f"{name} weights"], x=x, y=y, bar=say("weight", "权重"))
        for centres in data[f"{name} centres"].T:
            axes.plot(centres - 1, range(len(centres)), ".-", color=ORANGE, linewidth=0.8)
        axes.set_xlim(-0.5, 9.5)
        axes.set_title(title, fontsize=9)
