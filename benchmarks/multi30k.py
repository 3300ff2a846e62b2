"""Multi30k English to German by a shipped recipe: quality after training from scratch.

    python -m benchmarks.multi30k --work FOLDER [--seeds 1 2 3] [--threads 1]

The published figure, 41.02, is BLEU of tokenised lower-cased text on test_2016_flickr, with the
last ten checkpoints averaged and a beam of five (Wu et al., 2021, Transformer-tiny). Ours is
measured on the same text with the same beam by the recipe ``transformer-muon`` as it is: outputs
and references are lower-cased and cut into tokens by sacrebleu's ``13a`` rules, which follow Moses'
tokenizer; the model itself is cased. The final weights are those of the candidates (last, best,
averages) whose loss on the validation set is lowest; the test sets are read once, after training.
Beside it stand cased detokenised BLEU and chrF, and the trivial baseline of copying the source.

Each seed has a run in the work folder: it goes on where it was stopped, and is measured once.
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.training import train
from regard.cli.jobs import parse_arguments
from regard.inference import Predictor
from regard.metrics import bleu, chrf
from regard.runs import Run
from regard.tasks import Recipe
from regard.text import Pair, read_pairs

RECIPE = "transformer-muon"
PUBLISHED = 41.02
TESTS = ("test_2016_flickr", "test_2017_flickr")
SEEDS = measuring.sized((1, 2, 3), (1,))
_FIGURES = ("tokenised_lowercased_bleu", "bleu", "chrf")


def recipe_of(seed: int) -> Recipe:
    """The shipped recipe on Multi30k."""
    home = measuring.corpora().resolve() / "multi30k"

    def both(name: str, ending: str = "") -> list[str]:
        return [str(home / f"{name}.{language}{ending}") for language in ("en", "de")]

    parts = {"data.valid": both("val"), "data.test": both(TESTS[0])}
    return parse_arguments([RECIPE, *both("train", ".gz")]).resolve(
        {**parts, "training.seed": seed}
    )


def of_seed(work: Path, seed: int) -> dict[str, Any]:
    """Figures of one training; those in its file, where it was measured before."""
    path, run = work / f"multi30k-seed{seed}.json", work / f"multi30k-seed{seed}"
    if not path.exists():
        before = measuring.machine()
        trained = train(recipe_of(seed), run)
        minutes = round(float(trained.summary["seconds"]) / 60, 1)
        found = {
            "seed": seed,
            "minutes": minutes,
            "summary": Run.open(run).summary,
            "tests": measure(trained.predictor),
            "measured": measuring.occasion(before),
        }
        path.write_text(json.dumps(found, ensure_ascii=False), "utf-8")
    return dict(json.loads(path.read_text("utf-8")))


def measure(predictor: Predictor) -> dict[str, Any]:
    """Scores on the test sets, with some outputs to read."""
    results: dict[str, Any] = {}
    for test in TESTS:
        home = measuring.corpora() / "multi30k"
        pairs: list[Pair] = list(read_pairs(home / f"{test}.en", home / f"{test}.de"))
        references = [pair.target for pair in pairs]
        outputs = [found[0].text for found in predictor.translate([pair.source for pair in pairs])]
        scores = (
            bleu(outputs, references, lowercase=True, resamples=1000),
            bleu(outputs, references, resamples=1000),
            chrf(outputs, references),
        )
        results[test] = {
            **{
                name: {"value": each.value, "signature": each.signature, "margin": each.margin}
                for name, each in zip(_FIGURES, scores, strict=True)
            },
            "copy_baseline_bleu": bleu([pair.source for pair in pairs], references).value,
            "outputs": [
                {"source": pair.source, "reference": pair.target, "output": output}
                for pair, output in list(zip(pairs, outputs, strict=True))[::100]
            ],
        }
    return results


def figures_of(seeds: Sequence[dict[str, Any]]) -> list[measuring.Figure]:
    """The lines of the page: means over the seeds."""
    tests = [each["tests"][TESTS[0]] for each in seeds]
    tokenised, cased, letters = ([test[name]["value"] for test in tests] for name in _FIGURES)
    mean = statistics.fmean
    tokens = mean(each["summary"]["target_tokens"] for each in seeds) / 1e6
    minutes = mean(each["minutes"] for each in seeds)
    spread = f"; {min(tokenised):.2f} to {max(tokenised):.2f}" if len(seeds) > 1 else ""
    return [
        measuring.Figure(
            what="Multi30k en→de, tokenised lower-cased BLEU, test 2016",
            ours=f"{mean(tokenised):.2f}",
            beside=f"published for this size: {PUBLISHED}",
            note=f"`{RECIPE}`, seeds: {len(seeds)}, "
            f"{tokens:.1f} M target tokens in {minutes:.0f} min each{spread}",
        ),
        measuring.Figure(
            what="Multi30k en→de, cased detokenised BLEU / chrF, test 2016",
            ours=f"{mean(cased):.2f} / {mean(letters):.2f}",
            beside=f"copying the source: {tests[0]['copy_baseline_bleu']:.2f} BLEU",
        ),
    ]


def main() -> None:
    """Train and measure what is missing, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of runs and results")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dry", action="store_true", help="write no record")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before = measuring.machine()
    seeds = [of_seed(arguments.work, seed) for seed in arguments.seeds]
    figures = figures_of(seeds)
    print(*figures, sep="\n")
    if arguments.dry:
        return
    measuring.write_record(
        "multi30k",
        title="Multi30k en→de, Transformer-tiny",
        figures=figures,
        details={"recipe": RECIPE, **{f"seed {each['seed']}": each for each in seeds}},
        started_on=before,
    )


if __name__ == "__main__":
    main()
