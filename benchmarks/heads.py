"""Roles of the heads of pretrained readers, as Clark et al. (2019) find them in BERT.

    python -m benchmarks.heads

Of each encoder: how much of every head's attention goes to marks, neighbours, itself, equal tokens
and punctuation, and how widely it looks. In English besides: each dependency relation of the EWT
treebank predicted by its best head, which the development part chooses and the test part
measures, beside the best fixed offset; and the noun of *it* in sentences written for this. In
Chinese: neighbours inside a word and across its end, and words found by them. Word-level attention
is that of ``benchmarks.dependencies``. The page of one sentence, which figures and gallery are
drawn from, lies beside the figures: ``docs/figures/course/reader.json``.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import regard as rg
from benchmarks import measuring
from benchmarks.dependencies import (
    DIRECTIONS,
    OFFSETS,
    Hits,
    count_hits,
    pointed_to,
    predictor,
    read_treebank,
    read_words,
)
from benchmarks.encoders import LICENCES, encoder, pieces_of
from regard.interop import Watch, load_folder

TREEBANK = "ud-english-ewt"
CHINESE = "word-alignments/zhen.tsv"  # whose Chinese is cut into words
PRONOUNS = Path(__file__).with_name("pronouns.tsv")
COMMAS = (",", "，", "、")
SENTENCES = 500  # of each language whose heads' weights are added up, evenly spaced
LEAST = 50  # words of a relation in the test part for it to be among the figures
_WORD = re.compile(r"[\[(]?\w+[\])]?|[^\w\s]")
_CHINESE = re.compile("[\u4e00-\u9fff]")
_NEIGHBOURS = {"previous": -1, "next": 1}


def roles(
    model: Any, tokenizer: Any, texts: Sequence[Sequence[str]], *, asks_words: bool
) -> dict[str, Any]:
    """Mean weights of every head on keys of each kind, beside those of even weights.

    With ``asks_words``, neighbours too: those of the same word, and those of another.
    """
    sums, counts = dict[str, Tensor](), dict[str, int]()
    texts = texts[:: max(1, len(texts) // SENTENCES)][:SENTENCES]
    for words in texts:
        ids, tokens, of = pieces_of(tokenizer, words)
        with torch.no_grad(), rg.watch(model, top=0, map=1, keep=True) as seen:
            model(ids)
        kinds = _links(of) if asks_words else {}
        parts = [_of_layer(seen, each.layer, tokens, kinds) for each in seen]
        for name, (_, count) in parts[0].items():
            total = torch.stack([part[name][0] for part in parts]) * count
            sums[name] = sums.get(name, 0) + total
            counts[name] = counts.get(name, 0) + count
    means = {name: sums[name] / max(1, counts[name]) for name in sums}
    return {
        "texts": len(texts),
        "tokens": counts["entropy"],
        "queries": counts,
        "heads": {name: _rounded(mean[:, :-1]) for name, mean in means.items()},
        "even": {name: round(float(mean[0, -1]), 4) for name, mean in means.items()},
    }


def _of_layer(
    seen: Watch, layer: int, tokens: list[str], kinds: Mapping[str, list[tuple[int, int]]]
) -> dict[str, tuple[Tensor, int]]:
    """Numbers of a layer's heads on one text, those of even weights last, and of how many queries.

    All are in the library's own words: ``head_scores`` and what a summary holds.
    """
    summary, N = seen.summary(layer)[0], len(tokens)
    scores = seen.head_scores(layer, tokens)
    found = {
        name: (torch.cat([weight, torch.tensor([scores.even[name]])]), scores.queries[name])
        for name, weight in scores.weight.items()
    }
    for name, pairs in kinds.items():
        links = seen.head_scores(layer, tokens, links=pairs)
        even = torch.tensor([links.even["links"]])
        found[name] = torch.cat([links.weight["links"], even]), links.queries["links"]
    is_comma = torch.tensor([token in COMMAS for token in tokens])
    is_last = torch.arange(N) == N - 1
    for name, chosen in {"last": is_last, "comma": is_comma}.items():
        mean = summary.received[:, chosen].sum(dim=-1) / N
        found[name] = torch.cat([mean, chosen.float().mean()[None]]), N
    for name, values in {"entropy": summary.entropy, "distance": summary.distance}.items():
        even = math.log(N) if name == "entropy" else (N * N - 1) / (3 * N)
        found[name] = torch.cat([values.mean(dim=-1), torch.tensor([even])]), N
    begin = summary.entropy[:, 0]
    found["entropy of the first"] = torch.cat([begin, torch.tensor([math.log(N)])]), 1
    return found


def _links(words: Sequence[int | None]) -> dict[str, list[tuple[int, int]]]:
    """Neighbours of pieces, by direction and by whether they are of the same word."""
    kinds: dict[str, list[tuple[int, int]]] = {}
    for name, step in _NEIGHBOURS.items():
        for is_same in (True, False):
            kinds[f"{name} {'inside' if is_same else 'across'}"] = [
                (place, place + step)
                for place, word in enumerate(words)
                if word is not None
                and (other := words[place + step]) is not None
                and (word == other) == is_same
            ]
    return kinds


def relations(model: Any, tokenizer: Any, folder: Path) -> dict[str, Any]:
    """Relations of the treebank by their best heads and offsets, chosen by its development part."""
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    chosen, measured = (
        count_hits(model, tokenizer, [*read_treebank(folder / f"en_ewt-ud-{part}.conllu.gz")])
        for part in ("dev", "test")
    )

    def of(known: Hits, test: Hits) -> dict[str, Any]:
        best, offset = int(known.heads.argmax()), int(known.offsets.argmax())
        right = float(test.heads[best]) / test.count
        return {
            **predictor(best, layers, heads),
            "right": round(right, 4),
            "error": round(math.sqrt(right * (1 - right) / test.count), 4),
            "offset": OFFSETS[offset],
            "offset_right": round(float(test.offsets[offset]) / test.count, 4),
            "words": test.count,
            "choosing_words": known.count,
        }

    names = sorted(measured, key=lambda name: -measured[name].count)
    return {name: of(chosen[name], measured[name]) for name in names if name in chosen}


def pronouns(model: Any, tokenizer: Any) -> dict[str, Any]:
    """How often a head takes *it* for its noun, of two: chosen on half of the pairs.

    Beside it stand the nearer noun and the first: each is right in one sentence of every pair.
    """
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    lines = [line.split("\t") for line in PRONOUNS.read_text("utf-8").splitlines()]
    marked = [_WORD.findall(text) for _, text in lines]
    plain = [[word.strip("[]()") if len(word) > 1 else word for word in each] for each in marked]
    is_right, tops, weight = torch.zeros(3, len(lines), 2 * layers * heads)
    for number, weights in read_words(model, tokenizer, plain):
        words = marked[number]
        noun, other = (_place(words, mark) for mark in "[(")
        it = words.index("it")
        both = torch.cat([weights[:, it], weights[:, :, it]])
        is_right[number] = (both[:, noun] > both[:, other]).float()
        tops[number] = (pointed_to(weights)[:, it] == noun).float()
        weight[number] = both[:, noun]
    numbers = torch.arange(len(lines))
    is_choosing = numbers // 2 % 2 == 0
    kinds = {
        name: torch.tensor([kind == name for kind, _ in lines]) for name in ("person", "thing")
    }
    found: dict[str, Any] = {"sentences": int((~is_choosing).sum())}
    for place, direction in enumerate(DIRECTIONS):
        of = slice(place * layers * heads, (place + 1) * layers * heads)
        best = int(is_right[is_choosing, of].mean(dim=0).argmax()) + of.start
        found[direction] = {
            **predictor(best, layers, heads),
            "chosen_with": round(float(is_right[is_choosing, best].mean()), 4),
            "right": round(float(is_right[~is_choosing, best].mean()), 4),
            "first_of_all_words": round(float(tops[~is_choosing, best].mean()), 4),
            **{
                kind: round(float(is_right[chosen & ~is_choosing, best].mean()), 4)
                for kind, chosen in kinds.items()
            },
        }
        if direction == "to":
            found["sentence"] = _plain(lines[int((weight[:, best] * ~is_choosing).argmax())][1])
    return found


def _place(words: Sequence[str], mark: str) -> int:
    return next(place for place, word in enumerate(words) if word.startswith(mark))


def _plain(text: str) -> str:
    return re.sub(r"[\[\]()]", "", text)


def words_found(model: Any, tokenizer: Any, texts: Sequence[Sequence[str]]) -> dict[str, Any]:
    """How well a head tells characters of one word from those of two: area under the ROC curve.

    Of neighbours that are both Chinese characters, as other signs give themselves away.

    The head, and whether the one before or the one after is looked at, is chosen by every other
    text and measured by the rest.
    """
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    weights: tuple[list[Tensor], list[Tensor]] = ([], [])
    labels: tuple[list[Tensor], list[Tensor]] = ([], [])
    for number, words in enumerate(texts):
        ids, tokens, of = pieces_of(tokenizer, words)
        with torch.no_grad(), rg.watch(model, top=0, map=1, keep=True) as seen:
            model(ids)
        rows = torch.cat([seen.rows(each.layer, range(len(of)))[0] for each in seen])
        after, before = rows.diagonal(1, -2, -1), rows.diagonal(-1, -2, -1)
        are_chinese = [bool(_CHINESE.fullmatch(token)) for token in tokens]
        counts = torch.tensor([a and b for a, b in pairwise(are_chinese)])
        is_word = torch.tensor([a == b for a, b in pairwise(of)])
        weights[number % 2].append(torch.cat([after, before])[:, counts])
        labels[number % 2].append(is_word[counts])
    areas = [
        areas_of(torch.cat(some, dim=-1), torch.cat(are_words))
        for some, are_words in zip(weights, labels, strict=True)
    ]
    best = int(areas[0].argmax())
    place = predictor(best, layers, heads)
    neighbour = "next" if place.pop("direction") == DIRECTIONS[0] else "previous"
    is_word = torch.cat(labels[1])
    return {
        **place,
        "neighbour": neighbour,
        "area": round(float(areas[1][best]), 4),
        "pairs": len(is_word),
        "pairs_in_a_word": int(is_word.sum()),
    }


def areas_of(scores: Tensor, labels: Tensor) -> Tensor:
    """The area under the ROC curve of each row of scores: the share of pairs in the right order."""
    ranks = scores.argsort(dim=-1).argsort(dim=-1).double() + 1
    positives = int(labels.sum())
    least = positives * (positives + 1) / 2
    return (ranks[:, labels].sum(dim=-1) - least) / max(1, positives * (len(labels) - positives))


def figures_of(found: Mapping[str, Any]) -> list[measuring.Figure]:
    english, chinese = found["minilm-en"], found["roberta-zh"]
    best, it = english["relations"]["all"], english["pronouns"]
    shown = [each for name, each in english["relations"].items() if each["words"] >= LEAST]
    higher = sum(each["right"] > each["offset_right"] for each in shown[1:])
    place = chinese["words"]
    return [
        measuring.Figure(
            what="Syntactic heads of EWT's test part found by one head of minilm-en, %",
            ours=f"{100 * best['right']:.1f}",
            beside=f"best fixed offset: {100 * best['offset_right']:.1f}",
            note=f"{best['words']:,} words without punctuation; {_named(best)}",
        ),
        measuring.Figure(
            what="Relations of EWT for which a head of minilm-en is better than every fixed offset",
            ours=f"{higher}",
            beside=f"of {len(shown) - 1} relations with at least {LEAST} words",
            note=f"chosen by the development part, {best['choosing_words']:,} words",
        ),
        measuring.Figure(
            what="*It* taken for its noun, of two, by one head of minilm-en, %",
            ours=f"{100 * it['to']['right']:.1f}",
            beside="the nearer noun: 50.0; the first noun: 50.0",
            note=f"{it['sentences']} sentences written for this; {_named(it['to'])}",
        ),
        measuring.Figure(
            what="Chinese words found by one head of roberta-zh, area under the ROC curve, %",
            ours=f"{100 * place['area']:.1f}",
            beside="without looking: 50.0",
            note=f"{place['pairs']:,} pairs of neighbours; {_named(place)}",
        ),
    ]


def _named(place: Mapping[str, Any]) -> str:
    return f"layer {place['layer'] + 1}, head {place['head'] + 1}"


def read(name: str, work: Callable[[Any, Any], dict[str, Any]]) -> dict[str, Any]:
    """Findings of an encoder, with its sizes and its licence."""
    model, tokenizer = load_folder(encoder(name))
    return {
        "licence": LICENCES[name],
        "layers": model.config.num_hidden_layers,
        "heads": model.config.num_attention_heads,
        "parameters": sum(each.numel() for each in model.parameters()),
        **work(model, tokenizer),
    }


def english(model: Any, tokenizer: Any) -> dict[str, Any]:
    folder = measuring.corpora() / TREEBANK
    test = [each.words for each in read_treebank(folder / "en_ewt-ud-test.conllu.gz")]
    it = pronouns(model, tokenizer)
    page = rg.look(model, tokenizer, it["sentence"], title="What minilm-en looks at", explain=False)
    drawn = measuring.DRAWINGS / "course" / "reader.json"
    drawn.parent.mkdir(parents=True, exist_ok=True)
    drawn.write_text(page.document.to_json() + "\n", "utf-8")
    return {
        "text": "sentences of the test part of EWT, one at a time",
        "roles": roles(model, tokenizer, test, asks_words=False),
        "relations": relations(model, tokenizer, folder),
        "pronouns": it,
    }


def chinese(model: Any, tokenizer: Any) -> dict[str, Any]:
    lines = (measuring.corpora() / CHINESE).read_text("utf-8").splitlines()
    texts = [line.split("\t")[0].split(" ") for line in lines]
    return {
        "text": "the Chinese sentences of word-alignments",
        "roles": roles(model, tokenizer, texts, asks_words=True),
        "words": words_found(model, tokenizer, texts),
    }


def main() -> None:
    arguments = measuring.command(__doc__).parse_args()
    torch.set_num_threads(arguments.threads)
    found = {"minilm-en": read("minilm-en", english), "roberta-zh": read("roberta-zh", chinese)}
    figures = figures_of(found)
    print(*figures, sep="\n")
    if not arguments.dry:
        measuring.write_record(
            "heads",
            title="What the heads of pretrained readers do",
            figures=figures,
            details=found,
            packages=("torch", "transformers"),
        )


def _rounded(values: Tensor) -> list[list[float]]:
    return [[round(each, 4) for each in row] for row in values.tolist()]


if __name__ == "__main__":
    main()
