"""Classifiers on three corpora of reviews, from scratch, beside simple ones.

python -m benchmarks.classification --work FOLDER [--only sst2 hotel shopping]

Trained by the shipped recipes for the epochs they say; the last weights are measured, so nothing is
chosen by the development set. A run that is finished is not trained again, and a part that is has a
file of its figures in the work folder; the record names the parts that have none.
"""

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks import linear_text, measuring
from benchmarks.measuring import sized
from benchmarks.naive_bayes import NaiveBayes
from benchmarks.training import train
from regard.cli.recipes import packaged_recipe
from regard.config import parse_settings
from regard.inference import Predictor
from regard.inference.evaluation.comparison import Ensemble
from regard.tasks import Recipe, read_recipe
from regard.tasks.labels.classification import Classification, LabelledText
from regard.tasks.labels.label_task import LabelPrediction
from regard.text.reading.records import Field, read_records

SEEDS = sized((1, 2, 3), (1,))
NEVER = 10**9


@dataclass(frozen=True)
class Corpus:
    """Where a corpus is and how its columns are read."""

    folder: str
    train: str
    dev: str
    test: str | None
    columns: Mapping[str, int]


_CHINESE = {"train": "train.tsv.gz", "dev": "dev.tsv"}
_SHOPPING = {**_CHINESE, "test": "test.tsv.gz"}
CORPORA = {
    "sst2": Corpus("sst2", "train.tsv", "dev.tsv", None, {"text": 1, "label": 2}),
    "hotel": Corpus(
        "chnsenticorp-htl", **_CHINESE, test="test.tsv", columns={"text": 2, "label": 1}
    ),
    "shopping": Corpus(
        "online-shopping-10cats", **_SHOPPING, columns={"text": 3, "label": 1, "aspect": 2}
    ),
}


@dataclass(frozen=True)
class System:
    """A shipped recipe, and what is set besides."""

    recipe: str
    settings: tuple[str, ...] = ()


_CONVOLUTION, _RECURRENT = "classification-convolution", "classification-recurrent"
_TRANSFORMER, _CHARACTERS = "classification-transformer", "classification-chinese"
CONVOLUTION, RECURRENT, TRANSFORMER = "convolution, query", "GRU, query", "Transformer, mean"
PAIRS = "characters and pairs, mean"
ASPECT = "convolution, query of the aspect"
_NARROW = ("model.widths=[1, 3, 5]", "model.channels=64", "head.ngram_scores=false")
ALONE = System(_CHARACTERS, ("head.ngram_scores=false",))
FEW_EPOCHS = System(
    _CHARACTERS, (*ALONE.settings, "training.epochs=3", "training.batch_tokens=6000")
)
HEADS = {
    CONVOLUTION: System(_CONVOLUTION, (*_NARROW, "head.pooling=query")),
    RECURRENT: System(_RECURRENT),
    TRANSFORMER: System(_TRANSFORMER),
}


@dataclass
class Bayes:
    """Naive Bayes that answers as a run does, to stand beside runs in an ensemble."""

    task: Classification
    model: NaiveBayes

    def answers(
        self, examples: Sequence[LabelledText], *, progress: Any = None
    ) -> list[LabelPrediction]:
        """The label of each text."""
        every = [self.model.probabilities(example.text) for example in examples]
        return [LabelPrediction(max(shares, key=shares.__getitem__), shares) for shares in every]


@dataclass
class Bench:
    """Trains what is missing, and remembers figures in files."""

    work: Path
    data: Path

    def once(self, name: str, measure: Any) -> Any:
        path = self.work / "results" / f"{name}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(measure(), ensure_ascii=False), "utf-8")
            print(name, path.read_text("utf-8")[:300], flush=True)
        return json.loads(path.read_text("utf-8"))

    def run(self, name: str, system: System, corpus: str, seed: int) -> dict[str, float]:
        """Accuracy on dev and test of one training."""
        key = _key(corpus, name, seed)

        def measure() -> dict[str, Any]:
            trained = train(self.recipe(system, corpus, seed), self.folder(key))
            seconds, labeller = trained.summary["seconds"], trained.predictor
            return {**self.scores(labeller, corpus), "seconds": round(seconds, 1)}

        found: dict[str, float] = self.once(key, measure)
        return found

    def folder(self, key: str) -> Path:
        """Where a run is."""
        return self.work / "runs" / key

    def recipe(self, system: System, corpus: str, seed: int) -> Any:
        """The recipe of one training."""
        where = CORPORA[corpus]
        folder = self.data / where.folder
        settings = [
            *system.settings,
            f"training.seed={seed}",
            f"training.validate_every={NEVER}",
            *(f"data.{name}={column}" for name, column in where.columns.items()),
        ]
        recipe = read_recipe(packaged_recipe(system.recipe), parse_settings(settings))
        data = replace(
            recipe.data, train=(str(folder / where.train),), valid=(str(folder / where.dev),)
        )
        return replace(recipe, data=data)

    def examples(self, corpus: str, split: str) -> list[LabelledText]:
        """The texts of a split."""
        where = CORPORA[corpus]
        fields = [Field(name, column) for name, column in where.columns.items()]
        path = self.data / where.folder / getattr(where, split)
        return [
            LabelledText(" ".join(found["text"].split()), found["label"], found.get("aspect"), at)
            for found, at in read_records(path, fields)
        ]

    def scores(self, labeller: Predictor | Ensemble, corpus: str) -> dict[str, float]:
        """Accuracy and F1 on dev and test."""
        found = {}
        for split in self.splits(corpus):
            examples = self.examples(corpus, split)
            for metric, value in labeller.task.score(labeller.answers(examples), examples).items():
                found[f"{split} {metric}"] = round(value, 2)
        return found

    def splits(self, corpus: str) -> Iterator[str]:
        yield "dev"
        if CORPORA[corpus].test is not None:
            yield "test"

    def seeds(self, name: str, system: System, corpus: str) -> dict[str, Any]:
        """Three trainings, their mean, and what they answer together."""
        every = [self.run(name, system, corpus, seed) for seed in SEEDS]
        joined = self.once(
            f"{_key(corpus, name)}-ensemble",
            lambda: self.scores(self.together(corpus, [name]), corpus),
        )
        return {"seeds": every, "mean": means(every), "ensemble": joined}

    def together(self, corpus: str, names: Sequence[str]) -> Ensemble:
        """All seeds of some heads."""
        keys = [_key(corpus, name, seed) for name in names for seed in SEEDS]
        return Ensemble.load(*map(self.folder, keys))

    def bayes(self, corpus: str, known: Sequence[LabelledText] | None = None) -> dict[str, float]:
        """Naive Bayes on the same examples."""
        known = known or self.examples(corpus, "train")
        model = NaiveBayes([(each.text, each.label or "") for each in known])
        found = {}
        for split in self.splits(corpus):
            examples = self.examples(corpus, split)
            right = sum(model.label(each.text) == each.label for each in examples)
            found[f"{split} accuracy"] = round(100 * right / len(examples), 2)
        return found

    def linear(self, corpus: str) -> dict[str, Any]:
        """TF-IDF with linear classifiers, chosen on dev; where dev is measured, on training."""

        def columns(split: str) -> linear_text.Labelled:
            examples = self.examples(corpus, split)
            return [each.text for each in examples], [each.label or "" for each in examples]

        parts = {split: columns(split) for split in self.splits(corpus)}
        valid = "dev" if "test" in parts else None
        found: dict[str, Any] = self.once(
            f"{corpus}-linear",
            lambda: linear_text.measure(
                columns("train"), parts, valid=valid, spaced=corpus == "sst2"
            ),
        )
        return found


def _key(corpus: str, *names: object) -> str:
    return "-".join([corpus, *(str(name).replace(", ", "-").replace(" ", "-") for name in names)])


def means(every: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: round(statistics.mean(each[name] for each in every), 2) for name in every[0]}


def _sst2(bench: Bench) -> dict[str, Any]:
    chosen = (TRANSFORMER, CONVOLUTION, RECURRENT)
    found: dict[str, Any] = {name: bench.seeds(name, HEADS[name], "sst2") for name in chosen}
    for name in chosen:
        found[name]["with naive Bayes"] = _with_bayes(bench, "sst2", [name])
    found["all of these together"] = bench.once(
        "sst2-ensemble", lambda: bench.scores(bench.together("sst2", chosen), "sst2")
    )
    found["all of these and naive Bayes"] = _with_bayes(bench, "sst2", chosen)
    found["naive Bayes"] = bench.once("sst2-bayes", lambda: bench.bayes("sst2"))
    found.update(bench.linear("sst2"))
    return found


def _with_bayes(bench: Bench, corpus: str, names: Sequence[str]) -> dict[str, float]:
    """Runs together for one half, naive Bayes for the other.

    On folds of sst2's training part that was better than to count it as one run among the others.
    """

    def measure() -> dict[str, float]:
        runs = bench.together(corpus, names)
        known = [(each.text, each.label or "") for each in bench.examples(corpus, "train")]
        return bench.scores(Ensemble([runs, Bayes(runs.task, NaiveBayes(known))]), corpus)

    found: dict[str, float] = bench.once(f"{_key(corpus, *names)}-bayes", measure)
    return found


def _hotel(bench: Bench) -> dict[str, Any]:
    return {
        PAIRS: bench.seeds(PAIRS, ALONE, "hotel"),
        "naive Bayes": bench.once("hotel-bayes", lambda: bench.bayes("hotel")),
        **bench.linear("hotel"),
    }


def _shopping(bench: Bench) -> dict[str, Any]:
    aspect = System("classification-aspect")
    return {
        ASPECT: bench.run("aspect", aspect, "shopping", 1),
        PAIRS: bench.run(PAIRS, FEW_EPOCHS, "shopping", 1),
        "naive Bayes": bench.once("shopping-bayes", lambda: bench.bayes("shopping")),
        **bench.linear("shopping"),
    }


PARTS = {"sst2": _sst2, "hotel": _hotel, "shopping": _shopping}


def trainings(work: Path) -> dict[str, Recipe]:
    """The trainings of the record, by the names of its rows."""
    bench = Bench(work, measuring.corpora().resolve())
    systems = {
        **{("sst2", name): system for name, system in HEADS.items()},
        ("hotel", PAIRS): ALONE,
        ("shopping", PAIRS): FEW_EPOCHS,
        ("shopping", ASPECT): System("classification-aspect"),
    }
    return {
        f"{corpus} {name}": bench.recipe(system, corpus, 1)
        for (corpus, name), system in systems.items()
    }


def _figures(details: Mapping[str, Any]) -> list[measuring.Figure]:
    found = []
    if sst2 := details.get("sst2"):
        best = max((CONVOLUTION, RECURRENT), key=lambda name: sst2[name]["mean"]["dev accuracy"])
        shown = [sst2[name]["mean"]["dev accuracy"] for name in (best, TRANSFORMER)]
        joined = [sst2["all of these together"], sst2[best]["with naive Bayes"]]
        found.append(
            measuring.Figure(
                what=f"sst2 dev accuracy: {best} / Transformer / nine runs together / three of "
                f"{best}, with naive Bayes",
                ours=" / ".join(
                    f"{value:.1f}" for value in (*shown, *(each["dev accuracy"] for each in joined))
                ),
                beside=simple(sst2, ("dev",)),
                note="means of three seeds, fixed epochs, no text but the 6,920 sentences",
            )
        )
    if hotel := details.get("hotel"):
        mean = hotel[PAIRS]["mean"]
        found.append(
            measuring.Figure(
                what="chnsenticorp-htl accuracy, dev / test",
                ours=f"{mean['dev accuracy']:.1f} / {mean['test accuracy']:.1f}",
                beside=simple(hotel, ("dev", "test")),
                note="mean of three seeds, fixed epochs",
            )
        )
    if shopping := details.get("shopping"):
        ways = {PAIRS: PAIRS, "convolution, the category as the aspect": ASPECT}
        for shown, name in ways.items():
            ours = shopping[name]
            found.append(
                measuring.Figure(
                    what=f"online-shopping-10cats polarity, dev / test: {shown}",
                    ours=f"{ours['dev accuracy']:.1f} / {ours['test accuracy']:.1f}",
                    beside=simple(shopping, ("dev", "test")),
                    note="one seed, fixed epochs",
                )
            )
    return found


def simple(found: Mapping[str, Any], splits: Sequence[str]) -> str:
    """Accuracy of the simple classifiers, naive Bayes first."""
    return "; ".join(
        f"{name}: " + " / ".join(f"{found[name][f'{split} accuracy']:.1f}" for split in splits)
        for name in ("naive Bayes", *linear_text.CLASSIFIERS)
    )


def main() -> None:
    """Train what is missing, and write the record."""
    parser = measuring.command(__doc__, work="folder of runs and results")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="parts to measure")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before = measuring.machine()
    bench = Bench(arguments.work, measuring.corpora().resolve())
    only, work = [*(arguments.only or PARTS)], arguments.work
    details = measuring.parts_in(work, PARTS, only, lambda name: PARTS[name](bench))
    if arguments.dry:
        return
    details["not measured"] = [name for name in PARTS if name not in details]
    measuring.write_record(
        "classification",
        title="Classification of reviews, from scratch",
        figures=_figures(details),
        details=details,
        started_on=before,
    )


if __name__ == "__main__":
    main()
