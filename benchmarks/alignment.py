"""Alignment error rates: how far attention is from links that people, or a grammar, set.

- On the phrasebook's gold links, which training never sees: recurrent network with additive
  attention and Transformer, each with attention that mixes the encoder's states, as in the papers,
  and with attention that mixes the source embeddings. All by the demo's settings; the model of the
  demo's own recipe is among them.
- On the hand-made links of ``word-alignments/zhen.tsv``, for the translators that
  ``chinese_english`` trained. That is news, whose words are often unknown to a model of Tatoeba.

Outputs are the gold translations, teacher-forced. The layer that is read is the one with the lowest
error on other sentences than those measured. Beside each stands the diagonal.

    python -m benchmarks.alignment --work W --translators C [--minutes M] [--threads 1] [--dry]

``C`` is the ``--work`` of ``chinese_english``; without it, only the phrasebook is measured. Run
again after an interruption, it goes on where it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.equal_budgets import (
    ADDITIVE,
    TRANSFORMER,
    argument_parser,
    folder_name,
    train_for,
    translate,
)
from benchmarks.measuring import sized
from regard.attention.inspect.alignment import Link, Span
from regard.cli.recipes import packaged_recipe
from regard.inference import Predictor
from regard.inference.alignment import alignment_errors
from regard.metrics import exact_match
from regard.tasks import Recipe, read_recipe
from regard.text.phrasebook import phrases

FAMILIES = {ADDITIVE: "rnn_seq2seq", TRANSFORMER: "transformer"}
# The family that is not the demo's: model settings, and what its training does differently.
OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    ADDITIVE: (
        {"embed_dim": 128, "hidden_dim": 128, "attention_dim": 64, "dropout": 0.1},
        {"learning_rate": 0.004, "warmup": 100},
    ),
    TRANSFORMER: (
        {
            "model_dim": 128,
            "num_heads": 4,
            "num_encoder_layers": 2,
            "num_decoder_layers": 2,
            "ffn_dim": 256,
            "dropout": 0.1,
            "tie_embeddings": "target",
        },
        {"learning_rate": 0.003, "warmup": 100},
    ),
}
# Hand-aligned sentences that only choose the layer.
CHOOSING = sized(100, 4)
_FEW = sized(None, 4)


@dataclass(frozen=True, slots=True)
class HandAligned:
    """A sentence pair with links that people made.

    Attributes:
        source: The source text.
        target: The target text.
        source_words: Where each source word starts and ends, in characters.
        target_words: The same for the target.
        sure: Links (source word, target word) that must be there.
        possible: Links that may be there.
    """

    source: str
    target: str
    source_words: tuple[Span, ...]
    target_words: tuple[Span, ...]
    sure: frozenset[Link]
    possible: frozenset[Link]


def hand_aligned(line: str) -> HandAligned:
    r"""One line of ``zhen.tsv``: the Chinese without its spaces, the English with them.

    Example:
        >>> pair = hand_aligned("我 爱 中国\tI love China\t0-0 1-1 2p2")
        >>> pair.source, pair.source_words, sorted(pair.possible)
        ('我爱中国', ((0, 1), (1, 2), (2, 4)), [(0, 0), (1, 1), (2, 2)])
    """
    source, target, links = line.split("\t")
    sure = [link.split("-") for link in links.split() if "-" in link]
    maybe = [link.split("p") for link in links.split() if "p" in link]
    found = frozenset((int(s), int(t)) for s, t in sure)
    return HandAligned(
        source=source.replace(" ", ""),
        target=target,
        source_words=_spans(source.split(" "), space=0),
        target_words=_spans(target.split(" "), space=1),
        sure=found,
        possible=found | {(int(s), int(t)) for s, t in maybe},
    )


def _spans(words: Sequence[str], *, space: int) -> tuple[Span, ...]:
    spans, start = [], 0
    for word in words:
        spans.append((start, start + len(word)))
        start += len(word) + space
    return tuple(spans)


def errors_by_layer(predictor: Predictor, choosing: Any, measured: Any) -> dict[str, Any]:
    """The error of each layer and of their mean, and which of them ``choosing`` prefers."""
    count = getattr(predictor.recipe.model, "num_decoder_layers", 1)
    layers = {"mean of layers": None, **{f"layer {i}": i for i in range(count)}}
    if count == 1:
        del layers["mean of layers"]
    before = {n: alignment_errors(predictor, choosing, layer=i) for n, i in layers.items()}
    chosen = min(before, key=lambda name: before[name].linked)
    found = {n: alignment_errors(predictor, measured, layer=i) for n, i in layers.items()}
    return {
        "layer": chosen,
        **found[chosen].to_dict(),
        "by_layer": {name: errors.to_dict() for name, errors in found.items()},
    }


def phrasebook_recipes(demo: Recipe, minutes: float | None) -> dict[str, dict[str, Any]]:
    """The demo's recipe with each family and each kind of values; the demo's own is marked."""
    recipes = {}
    for family, kind in FAMILIES.items():
        is_demo = demo.model_type == kind
        for values in ("embeddings", "states"):
            table = demo.table()
            model, training = OTHERS[family]
            if is_demo:
                model, training = table["model"], {}
            if minutes is not None:
                training = {**training, "minutes": minutes}
                table["training"] = {**table["training"], "updates": None, "epochs": None}
            settings = {**table["training"], **training}
            table["training"] = {k: v for k, v in settings.items() if v is not None}
            table["model"] = {**model, "type": kind, "values": values}
            mark = " (the demo)" if is_demo and values == demo.model.values else ""
            recipes[f"{family} over {values}{mark}"] = table
    return recipes


def measure_phrasebook(work: Path, minutes: float | None) -> dict[str, Any]:
    """Errors on the phrasebook's test splits, and whether the outputs are right."""
    results = {}
    valid = phrases("valid")[:_FEW]
    for name, table in phrasebook_recipes(read_recipe(packaged_recipe("demo")), minutes).items():
        predictor, facts = train_for(table, work / folder_name("phrasebook", name))
        results[name] = {"training": facts, "recipe": table}
        for split in ("test", "new"):
            pairs = phrases(split)[:_FEW]
            outputs = translate(predictor, [pair.source for pair in pairs])
            match = exact_match(outputs, [pair.references for pair in pairs])
            results[name][split] = {
                "exact_match": match.value,
                **errors_by_layer(predictor, valid, pairs),
            }
            print(name, split, _brief(results[name][split]), f"{match.value:.1f} %", flush=True)
    return results


def measure_translators(folder: Path, corpora: Path) -> dict[str, Any]:
    """Errors of Tatoeba's translators on the hand-made links, and how much they cannot read."""
    path = corpora / "word-alignments" / "zhen.tsv"
    pairs = [hand_aligned(line) for line in path.read_text("utf-8").split("\n") if line]
    measured = pairs[CHOOSING:][:_FEW]
    results = {}
    for name in (ADDITIVE, TRANSFORMER):
        predictor = Predictor.load(folder / folder_name(name))
        results[name] = {
            **errors_by_layer(predictor, pairs[:CHOOSING], measured),
            "spelled_share": spelled_share(predictor, measured),
        }
        print(name, _brief(results[name]), flush=True)
    return results


def spelled_share(predictor: Predictor, pairs: Sequence[HandAligned]) -> float:
    """The share of target words that the vocabulary lacks: they are cut into several tokens."""
    words = spelled = 0
    for pair in pairs:
        pieces = predictor.tokenizer.target.pieces(pair.target)
        for start, end in pair.target_words:
            words += 1
            spelled += sum(start < piece.end and piece.start < end for piece in pieces) > 1
    return spelled / words


def _brief(found: Mapping[str, Any]) -> str:
    return f"{_errors(found)} ({found['layer']}); {_diagonal(found)}"


def phrasebook_figures(phrasebook: Mapping[str, Any]) -> list[measuring.Figure]:
    """The demo's model, and the best of the other family."""
    (demo,) = [name for name in phrasebook if name.endswith("(the demo)")]
    others = [name for name in phrasebook if name.split(" over ")[0] != demo.split(" over ")[0]]
    best = min(others, key=lambda name: float(phrasebook[name]["test"]["linked"]))
    return [
        measuring.Figure(
            what="Alignment error on the phrasebook's test, over words with a link / over all",
            ours=_errors(phrasebook[name]["test"]),
            beside=_diagonal(phrasebook[name]["test"]),
            note=f"{name}; {phrasebook[name]['test']['exact_match']:.1f} % of outputs right",
        )
        for name in (demo, best)
    ]


def zhen_figures(translators: Mapping[str, Any]) -> list[measuring.Figure]:
    """The best of the translators."""
    name = min(translators, key=lambda name: float(translators[name]["linked"]))
    found = translators[name]
    return [
        measuring.Figure(
            what="Alignment error on hand-aligned zh-en news, trained on Tatoeba",
            ours=_errors(found),
            beside=_diagonal(found),
            note=f"{name}, {found['layer']}; {100 * found['spelled_share']:.0f} % of words unknown",
        )
    ]


def _errors(found: Mapping[str, Any]) -> str:
    return f"{found['linked']:.3f} / {found['overall']:.3f}"


def _diagonal(found: Mapping[str, Any]) -> str:
    return f"diagonal: {found['diagonal_linked']:.3f} / {found['diagonal_overall']:.3f}"


def main() -> None:
    """Measure both, write the record."""
    parser = argument_parser(__doc__ or "", minutes=None)
    parser.add_argument("--translators", type=Path, help="the --work of chinese_english")
    parser.add_argument("--no-phrasebook", action="store_true", help="leave the phrasebook out")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before = measuring.machine()
    details: dict[str, Any] = {}
    lines: list[measuring.Figure] = []
    if not arguments.no_phrasebook:
        details["phrasebook"] = measure_phrasebook(arguments.work, arguments.minutes)
        lines += phrasebook_figures(details["phrasebook"])
    if arguments.translators is not None:
        details["zhen_sentences_that_chose_the_layer"] = CHOOSING
        details["zhen"] = measure_translators(arguments.translators, measuring.corpora())
        lines += zhen_figures(details["zhen"])
    for line in lines:
        print(line)
    if arguments.dry:
        return
    measuring.write_record(
        "alignment",
        title="Alignment error rates of attention, with the diagonal beside",
        figures=lines,
        details=details,
        started_on=before,
    )


if __name__ == "__main__":
    main()
