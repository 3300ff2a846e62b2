"""Figures of chapter 5: multi-head attention, and what one head and two heads learn."""

import torch
from matplotlib.figure import Figure
from torch import nn
from torch.nn import functional as F

import regard as rg
from regard.layers import MultiHeadAttention
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


@picture("heads-diagram", 4.6, 3.4)
def diagram(figure: Figure, data: Data, say: Say) -> None:
    """Queries, keys and values are projected for each head; heads are joined and projected."""
    axes = plain(figure.add_subplot(), 6.4, 4.8)
    names = (("queries", "查询"), ("keys", "键"), ("values", "值"))
    for place, (words, color) in enumerate(zip(names, (BLUE, PALE, TEAL), strict=True)):
        x, ink = 1.4 + 1.8 * place, "black" if color == PALE else "white"
        box(axes, x, 0.4, say(*words), width=1.1, color=color, ink=ink)
        for shift in (0.24, 0.12, 0.0):
            box(axes, x + shift, 1.5 + shift, "" if shift else say("linear", "全连接"), width=1.1)
        arrow(axes, (x, 0.68), (x, 1.22))
        for head in (0, 1):
            arrow(axes, (x + 0.3 * head, 1.8), (2.2 + 2 * head, 2.4), width=0.7)
    for x in (2.2, 4.2):
        box(axes, x, 2.7, say("attention", "注意力"), width=1.4, color=ORANGE, ink="white")
        arrow(axes, (x, 2.98), (3.2, 3.35))
    axes.text(3.2, 2.7, "…", ha="center")
    axes.text(5.3, 2.7, say("h heads", "h 个头"), va="center", color=GREY)
    box(axes, 3.2, 3.62, say("join", "拼接"), width=1.4)
    box(axes, 3.2, 4.4, say("linear", "全连接"), width=1.4)
    arrow(axes, (3.2, 3.9), (3.2, 4.13))


class TwoQuestions(nn.Module):
    """At each place: which token came before, and which was the first."""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(12, 32), nn.Embedding(10, 32)
        self.attention = MultiHeadAttention(32, num_heads)
        self.out = nn.Linear(32, 24)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states = self.tokens(tokens) + self.places.weight
        mixed, _ = self.attention(states, mask=rg.causal())
        out: torch.Tensor = self.out(mixed)
        return out.view(*out.shape[:-1], 2, 12)


def _learned() -> Data:
    maps = {}
    for num_heads in (1, 2):
        torch.manual_seed(0)
        model = TwoQuestions(num_heads)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(250):
            tokens = torch.randint(0, 12, (64, 10))
            both = torch.stack([F.pad(tokens, (1, -1)), tokens[:, :1].expand(-1, 10)], dim=-1)
            loss = F.cross_entropy(model(tokens)[:, 1:].flatten(0, 2), both[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad(), rg.watch(model, keep=True) as seen:
            model(tokens[:1])
        for head, weights in enumerate(seen.rows(0, range(10))[0]):
            maps[f"{num_heads}: {head}"] = weights.numpy()
    return maps


@picture("heads-learned", 6.6, 2.5, _learned, is_learned=True)
def learned(figure: Figure, data: Data, say: Say) -> None:
    """One head shares its weights between two jobs; two heads take one each."""
    names = (("the only head", "唯一的头"), ("one of two", "两头之一"), ("the other", "两头之二"))
    for axes, weights, words in zip(figure.subplots(1, 3), data.values(), names, strict=True):
        matrix(figure, axes, weights, x=say("key", "键"), y=say("query", "查询"))
        axes.set_title(say(*words), fontsize=9)
