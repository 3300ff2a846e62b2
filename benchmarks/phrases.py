"""Scores of phrases on Chinese reviews beside linear classifiers of the same n-grams.

python -m benchmarks.phrases --work FOLDER [--only hotel shopping]

The shipped recipe is trained for the epochs it says and its last weights are measured. Shopping
reviews are read with their category as the aspect; so is the linear SVM that stands beside, by
n-grams of each category besides. A run that is finished is not trained again, and the record says
of each corpus when it was measured.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from benchmarks import measuring
from benchmarks.classification import Bench, System, means, simple
from benchmarks.measuring import sized

_RECIPE = "classification-phrases"
SYSTEMS = {
    "hotel": System(_RECIPE),
    "shopping": System(
        _RECIPE,
        (
            *("head.pooling=aspect", "head.ngram_dropout=0.3", "data.drop_parts=0.0"),
            *("data.parts_min_count=3", "training.epochs=3", "training.learning_rate=2e-3"),
            *("training.batch_tokens=4000", "training.accumulate=4"),  # texts of all lengths
        ),
    ),
}
SHOWN = {
    "hotel": "chnsenticorp-htl accuracy by scores of phrases, dev / test",
    "shopping": "online-shopping-10cats polarity by scores of phrases of each category, dev / test",
}
SEEDS = {"hotel": sized((1, 2, 3), (1,)), "shopping": (1,)}
BY_ASPECT = "linear SVM, n-grams of each category"
_COSTS = sized((0.25, 0.5, 1.0), (0.5,))
_LEAST_TEXTS = 20  # that an n-gram of a category is in


def linear_by_aspect(bench: Bench, corpus: str) -> dict[str, Any]:
    """A linear SVM of n-grams, and of those that are of one aspect; C is chosen on dev."""
    splits = {split: bench.examples(corpus, split) for split in ("train", *bench.splits(corpus))}
    aspects = sorted({example.aspect for example in splits["train"]})
    vectors = TfidfVectorizer(analyzer="char", ngram_range=(1, 5), min_df=2, sublinear_tf=True)
    vectors.fit([example.text for example in splits["train"]])
    often = None

    def inputs(split: str) -> tuple[Any, Any]:
        nonlocal often
        every = vectors.transform([example.text for example in splits[split]])
        if often is None:
            often = every.getnnz(axis=0) >= _LEAST_TEXTS
        kept = every[:, often]
        own = [
            scipy.sparse.diags([float(e.aspect == aspect) for e in splits[split]]) @ kept
            for aspect in aspects
        ]
        return scipy.sparse.hstack([every, *own]).tocsr(), [e.label for e in splits[split]]

    matrices = {split: inputs(split) for split in splits}
    found = []
    for cost in _COSTS:
        model = LinearSVC(C=cost).fit(*matrices["train"])
        scores = {
            f"{split} accuracy": round(100 * float(np.mean(model.predict(x) == np.array(y))), 2)
            for split, (x, y) in matrices.items()
            if split != "train"
        }
        found.append({**scores, "chosen": f"C = {cost:g}"})
    return max(found, key=lambda each: each["dev accuracy"])


def _part(bench: Bench, corpus: str) -> dict[str, Any]:
    before = measuring.machine()
    seeds = [bench.run("phrases", SYSTEMS[corpus], corpus, seed) for seed in SEEDS[corpus]]
    found = {
        "phrases": {"seeds": seeds, "mean": means(seeds)},
        "naive Bayes": bench.once(f"{corpus}-bayes", lambda: bench.bayes(corpus)),
        **bench.linear(corpus),
    }
    if corpus == "shopping":
        found[BY_ASPECT] = bench.once(
            f"{corpus}-linear-aspects", lambda: linear_by_aspect(bench, corpus)
        )
    occasion = bench.once(f"{corpus}-measured", lambda: measuring.occasion(before))
    return {**found, "measured": occasion}


def _figure(corpus: str, found: dict[str, Any]) -> measuring.Figure:
    mean, shown = found["phrases"]["mean"], ("dev", "test")
    beside = simple(found, shown)
    if BY_ASPECT in found:
        own = " / ".join(f"{found[BY_ASPECT][f'{split} accuracy']:.1f}" for split in shown)
        beside = f"{beside}; {BY_ASPECT}: {own}"
    return measuring.Figure(
        what=SHOWN[corpus],
        ours=" / ".join(f"{mean[f'{split} accuracy']:.1f}" for split in shown),
        beside=beside,
        note=f"`{_RECIPE}`, seeds: {len(found['phrases']['seeds'])}; fixed epochs",
    )


def main() -> None:
    """Train what is missing, and write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of runs and results")
    parser.add_argument("--only", nargs="+", choices=SYSTEMS, default=[*SYSTEMS])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dry", action="store_true", help="write no record")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before = measuring.machine()
    bench = Bench(arguments.work, measuring.corpora().resolve())
    details: dict[str, Any] = {corpus: _part(bench, corpus) for corpus in arguments.only}
    if arguments.dry:
        return
    measuring.write_record(
        "phrases",
        title="Scores of phrases on Chinese reviews, from scratch",
        figures=[_figure(corpus, found) for corpus, found in details.items()],
        details={**details, "not measured": [name for name in SYSTEMS if name not in details]},
        started_on=before,
    )


if __name__ == "__main__":
    main()
