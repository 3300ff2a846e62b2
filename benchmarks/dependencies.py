"""Word-level attention of a reader, and the words that its heads point to.

As Clark et al. (2019, https://arxiv.org/abs/1906.04341) do it: of the pieces of a word, attention
to them is added up and attention from them averaged; marks and the word itself are left out; what
gets most is what a head predicts, either by what the word attends to, or by what attends to it.
"""

import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

import regard as rg
from benchmarks.encoders import pieces_of

DIRECTIONS = ("to", "from")  # attention of the dependent to its head, and of the head to it
OFFSETS = tuple(offset for offset in range(-10, 11) if offset)
_ROWS = 64  # sentences that are read at once


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words with the place of the syntactic head of each, -1 for the root, and its relation."""

    words: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]


def read_treebank(path: Path) -> Iterator[Sentence]:
    """Read the sentences of a file of CoNLL-U, without words that are only understood."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for block in file.read().split("\n\n"):
            lines = [line.split("\t") for line in block.splitlines() if not line.startswith("#")]
            rows = [cells for cells in lines if cells[0].isdecimal()]
            if rows:
                _, words, *_ = zip(*rows, strict=True)
                heads = tuple(int(cells[6]) - 1 for cells in rows)
                yield Sentence(words, heads, tuple(cells[7] for cells in rows))


def by_word(rows: Float[Tensor, "H N N"], words: Sequence[int | None]) -> Float[Tensor, "H W W"]:
    """Weights between words, from those between their pieces."""
    of = torch.tensor([-1 if word is None else word for word in words])
    is_of = (of[:, None] == torch.arange(int(of.max()) + 1)).to(rows.dtype)
    return (is_of / is_of.sum(dim=0)).T @ rows @ is_of


@torch.no_grad()
def read_words(
    model: Any, tokenizer: Any, texts: Iterable[Sequence[str]]
) -> Iterator[tuple[int, Float[Tensor, "H W W"]]]:
    """Read texts of words: the number of each, and the weights between its words.

    All heads of all layers, one layer after another. Texts of as many pieces are read at once, so
    that none is padded.
    """
    groups = defaultdict[int, list[tuple[int, Tensor, list[int | None]]]](list)
    for number, words in enumerate(texts):
        ids, _, of = pieces_of(tokenizer, words)
        groups[ids.shape[1]].append((number, ids, of))
    for length, group in sorted(groups.items()):
        for start in range(0, len(group), _ROWS):
            some = group[start : start + _ROWS]
            with rg.watch(model, top=0, map=1, keep=True) as seen:
                model(torch.cat([ids for _, ids, _ in some]))
            layers = [seen.rows(each.layer, range(length)) for each in seen]
            rows = torch.cat(layers, dim=1)
            for place, (number, _, of) in enumerate(some):
                yield number, by_word(rows[place], of)


def pointed_to(weights: Float[Tensor, "H W W"]) -> Int[Tensor, "P W"]:
    """The word that each predictor points to from each word: heads by ``DIRECTIONS``."""
    own = torch.eye(weights.shape[-1], dtype=torch.bool)
    weights = weights.masked_fill(own, -1)
    return torch.cat([weights.argmax(dim=-1), weights.argmax(dim=-2)])


@dataclass(slots=True)
class Hits:
    """How often each predictor is right about a relation."""

    heads: Tensor  # (P,) by head and direction
    offsets: Tensor  # (O,) by fixed offset
    count: int = 0


def count_hits(model: Any, tokenizer: Any, sentences: Sequence[Sentence]) -> Mapping[str, Hits]:
    """Hits of all predictors by relation, and of all relations but punctuation as ``all``."""
    hits = dict[str, Hits]()
    reading = read_words(model, tokenizer, (sentence.words for sentence in sentences))
    for number, weights in reading:
        sentence = sentences[number]
        gold, last = torch.tensor(sentence.heads), len(sentence.words) - 1
        at = torch.arange(last + 1)
        is_right = pointed_to(weights) == gold
        moved = torch.stack([(at + offset).clamp(0, last) for offset in OFFSETS]) == gold
        for place, relation in enumerate(sentence.relations):
            names = [relation] if relation == "punct" else [relation, "all"]
            for name in names if sentence.heads[place] >= 0 else ():
                found = hits.setdefault(
                    name, Hits(torch.zeros(len(is_right)), torch.zeros(len(OFFSETS)))
                )
                found.heads += is_right[:, place]
                found.offsets += moved[:, place]
                found.count += 1
    return hits


def predictor(number: int, layers: int, heads: int) -> dict[str, Any]:
    """Layer, head and direction of a predictor of ``pointed_to``."""
    direction, rest = divmod(number, layers * heads)
    return {"layer": rest // heads, "head": rest % heads, "direction": DIRECTIONS[direction]}
