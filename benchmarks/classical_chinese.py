"""Classical into modern Chinese, character by character: every score at equal budgets in CPU time.

A recurrent network with one fixed context vector, with each score of Bahdanau and Luong, with
copying, a convolutional network and a Transformer, of about one size, are trained on every sixth
pair of the corpus of histories for the same CPU time each. Recorded: BLEU over characters and chrF
of every third pair of the test chapters, beside the source itself, which many a modern sentence
repeats; and ten outputs of each.

    python -m benchmarks.classical_chinese --work W [--minutes 3] [--threads 1] [--dry]

Run again after an interruption, it goes on where it was.
"""

import random
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.equal_budgets import argument_parser, folder_name, train_for, translate
from regard.metrics import bleu, chrf, sentence_chrf
from regard.text import Pair, PairLayout, read_pairs

CORPUS = "classical-modern-zh"
_LONGEST = 48  # characters; longer test sentences are translated in parts
_RECURRENT: dict[str, Any] = {
    "type": "rnn_seq2seq",
    "embed_dim": 192,
    "hidden_dim": 192,
    "attention_dim": 96,
    "dropout": 0.1,
}
_LUONG = {**_RECURRENT, "decoder": "luong"}
SYSTEMS: dict[str, dict[str, Any]] = {
    "RNN, fixed context": {**_RECURRENT, "attention": "none"},
    "RNN, additive": {**_RECURRENT, "attention": "additive"},
    "RNN, dot": {**_LUONG, "attention": "dot"},
    "RNN, general": {**_LUONG, "attention": "general"},
    "RNN, location": {**_LUONG, "attention": "location", "max_length": 64},
    "RNN, additive, copying": {**_RECURRENT, "attention": "additive", "copy": True},
    "Convolutional": {
        "type": "conv_seq2seq",
        "embed_dim": 192,
        "hidden_dim": 192,
        "num_encoder_layers": 3,
        "num_decoder_layers": 3,
        "dropout": 0.1,
    },
    "Transformer": {
        "type": "transformer",
        "model_dim": 192,
        "num_heads": 4,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        "ffn_dim": 384,
        "dropout": 0.1,
        "norm": "pre",
    },
}


# A tiny run's: one of each kind.
_TINY = ["RNN, additive, copying", "Convolutional", "Transformer"]


def texts(work: Path) -> dict[str, list[Pair]]:
    """The pairs that are used, and files of those to train on in the work folder."""
    corpus, layout = measuring.corpora() / CORPUS, PairLayout(columns=(1, 2))
    parts = {"train": ("train.tsv.gz", 6), "valid": ("val.tsv", 10), "test": ("test.tsv", 3)}
    found = {}
    work.mkdir(parents=True, exist_ok=True)
    for split, (file, every) in parts.items():
        found[split] = list(read_pairs(corpus / file, layout=layout))[::every]
        lines = "".join(f"{pair.source}\t{pair.target}\n" for pair in found[split])
        (work / f"{split}.tsv").write_text(lines, encoding="utf-8")
    return found


def recipe_table(name: str, work: Path, minutes: float) -> dict[str, Any]:
    """The recipe of one system; all but the model is the same for all."""
    return {
        "task": "translation",
        "data": {
            "train": str((work / "train.tsv").resolve()),
            "valid": str((work / "valid.tsv").resolve()),
            "source_language": "lzh",
            "target_language": "zh",
            "max_length": _LONGEST,
        },
        "tokenizer": {"type": "characters", "min_count": 3, "shared": True},
        "model": dict(SYSTEMS[name]),
        "training": {
            "minutes": minutes,
            "batch_tokens": 1536,
            "learning_rate": 0.003,
            "warmup": 100,
            "schedule": "linear",
            "label_smoothing": 0.1,
            "clip_norm": 1.0,
            "validate_every": 1000,
            "validation_pairs": 0,
            "keep": 1,
            "seed": 1,
        },
        "decoding": {"beam_size": 4, "length_penalty": 1.0, "max_ratio": 2.0},
    }


def figures_of(outputs: list[str], pairs: list[Pair]) -> dict[str, float]:
    """BLEU over characters and chrF."""
    right = [pair.references for pair in pairs]
    return {
        "bleu": round(bleu(outputs, right, target_language="zh").value, 2),
        "chrf": round(chrf(outputs, right).value, 2),
        "characters": round(sum(map(len, outputs)) / len(outputs), 1),
    }


def to_read(outputs: list[str], pairs: list[Pair]) -> list[dict[str, str]]:
    """Three best outputs, three worst and four at random."""
    example_score = sentence_chrf(outputs, [pair.references for pair in pairs])
    order = sorted(range(len(outputs)), key=lambda place: -example_score[place])
    rest = order[3:-3]
    drawn = random.Random(0).sample(rest, min(4, len(rest)))
    return [
        {
            "kind": kind,
            "source": pairs[place].source,
            "output": outputs[place],
            "reference": pairs[place].target,
        }
        for kind, places in (("best", order[:3]), ("worst", order[-3:]), ("random", drawn))
        for place in places
    ]


def figures(results: dict[str, Any], copied: dict[str, float], minutes: float) -> list[Any]:
    """One line for each system."""
    return [
        measuring.Figure(
            what=f"Classical into modern Chinese, BLEU (characters) / chrF: {name}",
            ours=f"{found['measured']['bleu']:.1f} / {found['measured']['chrf']:.1f}",
            beside=f"the source itself {copied['bleu']:.1f} / {copied['chrf']:.1f}",
            note=f"{minutes:g} CPU minutes, {found['training']['updates']:,} updates, "
            f"{found['training']['parameters']:,} parameters",
        )
        for name, found in results.items()
    ]


def main() -> None:
    """Train and measure each, write the record."""
    parser = argument_parser(__doc__ or "", minutes=3)
    parser.add_argument("--only", nargs="+", choices=list(SYSTEMS), help="some of them; no record")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before, minutes = measuring.machine(), arguments.minutes
    pairs = texts(arguments.work)["test"]
    copied = figures_of([pair.source for pair in pairs], pairs)
    print("the source itself", copied, flush=True)
    results: dict[str, Any] = {}
    for name in arguments.only or measuring.sized([*SYSTEMS], _TINY):
        table = recipe_table(name, arguments.work, minutes)
        predictor, facts = train_for(table, arguments.work / folder_name(name))
        outputs = translate(predictor, [pair.source for pair in pairs])
        table["data"] |= {"train": "every 6th pair", "valid": "every 10th pair"}
        results[name] = {
            "training": facts,
            "recipe": table,
            "measured": figures_of(outputs, pairs),
            "to_read": to_read(outputs, pairs),
        }
        print(figures({name: results[name]}, copied, minutes)[0], flush=True)
        print(*results[name]["to_read"], sep="\n", flush=True)
    if arguments.dry or arguments.only:
        return
    measuring.write_record(
        "classical_chinese",
        title="Classical into modern Chinese, equal budgets in CPU minutes",
        figures=figures(results, copied, minutes),
        details={
            "cpu_minutes_each": minutes,
            "threads": arguments.threads,
            "test_pairs": len(pairs),
            "the_source_itself": copied,
            "systems": results,
        },
        started_on=before,
    )


if __name__ == "__main__":
    main()
