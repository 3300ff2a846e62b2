"""Multi30k English to German with the tiny Transformer: quality after training from scratch.

The published figure, 41.02, is BLEU of tokenised lower-cased text on test_2016_flickr, with the
last ten checkpoints averaged and a beam of five (Wu et al., 2021, Transformer-tiny). Ours is
measured on the same text with the same beam: outputs and references are lower-cased and cut into
tokens by sacrebleu's ``13a`` rules, which follow Moses' tokenizer; the model itself is cased. The
final weights are those of the candidates (last, best, average of the last ten, moving average)
whose loss on the validation set is lowest; the test sets are read once, after training. Beside it
stand cased detokenised BLEU and chrF, and the trivial baseline of copying the source. The settings
are those below; no recipe that comes with regard has them.

    python -m benchmarks.multi30k --run RUN [--updates 20000] [--seed 1] [--threads 2]

Run again after an interruption, it goes on where it was.
"""

import argparse
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.training import train
from regard.inference import Predictor
from regard.metrics import bleu, chrf
from regard.runs import Run
from regard.tasks import recipe_from_table
from regard.text import Pair, read_pairs

PUBLISHED = 41.02
TESTS = ("test_2016_flickr", "test_2017_flickr")


def recipe_table(corpora: Path, updates: int, seed: int) -> dict[str, Any]:
    home = corpora / "multi30k"
    return {
        "task": "translation",
        "data": {
            "train": [str(home / "train.en.gz"), str(home / "train.de.gz")],
            "valid": [str(home / "val.en"), str(home / "val.de")],
            "source_language": "en",
            "target_language": "de",
            "max_length": 128,
        },
        "tokenizer": {"type": "bpe", "vocab_size": 9712, "shared": True},
        "model": {
            "type": "transformer",
            "model_dim": 128,
            "ffn_dim": 256,
            "num_heads": 4,
            "num_encoder_layers": 4,
            "num_decoder_layers": 4,
            "dropout": 0.3,
            "norm": "pre",
        },
        "training": {
            "updates": updates,
            "batch_tokens": 2048,
            "learning_rate": 0.004,
            "warmup": 800,
            "label_smoothing": 0.1,
            "validate_every": 500,
            "validation_pairs": 0,
            "keep": 10,
            "ema": 0.999,
            "seed": seed,
            "schedule": "linear",
        },
        "decoding": {"beam_size": 5, "length_penalty": 1.0},
    }


def measure(predictor: Predictor, corpora: Path) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for test in TESTS:
        pairs = read_test(corpora, test)
        references = [pair.target for pair in pairs]
        outputs = [found[0].text for found in predictor.translate([pair.source for pair in pairs])]
        results[test] = {
            "tokenised_lowercased_bleu": _told(
                bleu(outputs, references, lowercase=True, resamples=1000)
            ),
            "bleu": _told(bleu(outputs, references, resamples=1000)),
            "chrf": _told(chrf(outputs, references)),
            "copy_baseline_bleu": _told(bleu([p.source for p in pairs], references)),
            "outputs": [
                {"source": p.source, "reference": p.target, "output": o}
                for p, o in list(zip(pairs, outputs, strict=True))[::100]
            ],
        }
    return results


def read_test(corpora: Path, test: str) -> list[Pair]:
    home = corpora / "multi30k"
    return list(read_pairs(home / f"{test}.en", home / f"{test}.de"))


def _told(score: Any) -> dict[str, Any]:
    return {"value": score.value, "signature": score.signature, "margin": score.margin}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, required=True, help="the run folder")
    parser.add_argument("--updates", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dry", action="store_true", help="write no record")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before = measuring.machine()
    corpora = measuring.corpora()
    table = recipe_table(corpora, arguments.updates, arguments.seed)
    trained = train(recipe_from_table(table), arguments.run)
    results = measure(trained.predictor, corpora)
    for test, figures in results.items():
        for name, figure in figures.items():
            if name != "outputs":
                print(test, name, f"{figure['value']:.2f}", figure["signature"])
    if arguments.dry:
        return
    main_test = results[TESTS[0]]
    figures = [
        measuring.Figure(
            what="Multi30k en→de, tokenised lower-cased BLEU, test 2016",
            ours=f"{main_test['tokenised_lowercased_bleu']['value']:.2f}",
            beside=f"published for this size: {PUBLISHED}",
            note=f"{Run.open(arguments.run).summary['target_tokens'] / 1e6:.1f} M target tokens",
        ),
        measuring.Figure(
            what="Multi30k en→de, cased detokenised BLEU / chrF, test 2016",
            ours=f"{main_test['bleu']['value']:.2f} / {main_test['chrf']['value']:.2f}",
            beside=f"copying the source: {main_test['copy_baseline_bleu']['value']:.2f} BLEU",
        ),
    ]
    measuring.write_record(
        "multi30k",
        title="Multi30k en→de, Transformer-tiny",
        figures=figures,
        details={
            "summary": Run.open(arguments.run).summary,
            "tests": results,
            "recipe": recipe_table(Path("$REGARD_DATA"), arguments.updates, arguments.seed),
        },
        started_on=before,
    )


if __name__ == "__main__":
    main()
