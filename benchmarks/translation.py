"""Translation by shipped recipes, trained from scratch: Multi30k en→de, Tatoeba zh→en.

    python -m benchmarks.translation --work FOLDER [--only "cmn-eng transformer-muon"] [--seeds 1]
        [--also FOLDER]

The weights are those of the candidates (last, best, averages) whose loss on the validation part is
lowest; the test parts are read once, after training. Beside the scores stand those of the nearest
training sentence's translation, by runs of one to three characters. Each seed has a run in the work
folder: it goes on where it was stopped, and is measured once. The record keeps its other rows, and
names those that it has not.

Of Multi30k the published figure, 41.02, is BLEU of tokenised lower-cased text on test_2016_flickr,
with the last ten checkpoints averaged and a beam of five (Wu et al., 2021, of a Transformer half as
wide as ``transformer-small``). Ours is measured on the same text with the same beam: outputs and
references are lower-cased and cut into tokens by sacrebleu's ``13a`` rules, which follow Moses'
tokenizer; the model itself is cased.
Tatoeba's pairs are merged by Chinese sentence, which may have several translations.
"""

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks import measuring
from benchmarks.training import settings_of, train
from regard.cli.jobs import parse_arguments
from regard.inference import Predictor
from regard.metrics import bleu, chrf
from regard.runs import Run
from regard.tasks import Recipe
from regard.text import Pair, PairLayout, read_pairs

PUBLISHED = 41.02
_FIGURES = ("tokenised_lowercased_bleu", "bleu", "chrf")


@dataclass(frozen=True)
class Corpus:
    """Files of a corpus; the first test part is the one that is shown."""

    name: str
    train: tuple[str, ...]
    valid: tuple[str, ...]
    tests: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    layout: PairLayout | None = None

    def read(self, files: Sequence[str]) -> list[Pair]:
        """The pairs of a part."""
        paths = [measuring.corpora() / self.name / file for file in files]
        return list(read_pairs(*paths, layout=self.layout))


MULTI30K = Corpus(
    name="multi30k",
    train=("train.en.gz", "train.de.gz"),
    valid=("val.en", "val.de"),
    tests={test: (f"{test}.en", f"{test}.de") for test in ("test_2016_flickr", "test_2017_flickr")},
)
TATOEBA = Corpus(
    name="cmn-eng",
    train=("train.tsv.gz",),
    valid=("val.tsv",),
    tests={"test": ("test.tsv",)},
    settings={"columns": (2, 1), "source_language": "zh", "target_language": "en"},
    layout=PairLayout(columns=(2, 1), merge_references=True),
)
# Rows of the record: a corpus, a shipped recipe, and what is set besides.
_OWN_PIECES = {"tokenizer.shared": False, "training.epochs": 40}
_WIDER = {
    **{"model.embed_dim": 256, "model.hidden_dim": 256, "model.dropout": 0.3},
    **{"tokenizer.min_count": 2, "training.updates": 2500},
}
ROWS: dict[str, tuple[Corpus, str, dict[str, Any]]] = {
    "multi30k transformer-small": (MULTI30K, "transformer-small", {}),
    "cmn-eng transformer-muon": (TATOEBA, "transformer-muon", _OWN_PIECES),
    "cmn-eng transformer-tiny": (TATOEBA, "transformer-tiny", {"tokenizer.shared": False}),
    "cmn-eng rnn-attention": (TATOEBA, "rnn-attention", _WIDER),
    "cmn-eng conv-seq2seq": (TATOEBA, "conv-seq2seq", _WIDER),
}


def recipe_of(row: str, seed: int) -> Recipe:
    """The shipped recipe on the corpus."""
    corpus, recipe, settings = ROWS[row]
    home = measuring.corpora().resolve() / corpus.name

    def paths(names: Sequence[str]) -> list[str]:
        return [str(home / name) for name in names]

    parts = {"valid": paths(corpus.valid), "test": paths(next(iter(corpus.tests.values())))}
    data = {f"data.{name}": value for name, value in {**parts, **corpus.settings}.items()}
    return parse_arguments([recipe, *paths(corpus.train)]).resolve(
        {**data, **settings, "training.seed": seed}
    )


def trainings(work: Path) -> dict[str, Recipe]:
    """The trainings of the record, by the names of its rows."""
    return {row: recipe_of(row, 1) for row in ROWS}


def of_seed(work: Path, row: str, seed: int) -> dict[str, Any]:
    """Figures of one training; those in its file, where it was measured before."""
    run = work / f"{row.replace(' ', '-')}-seed{seed}"
    path = run.with_suffix(".json")
    if not path.exists():
        before = measuring.machine()
        trained = train(recipe_of(row, seed), run)
        found = {
            "seed": seed,
            "minutes": round(float(trained.summary["seconds"]) / 60, 1),
            "summary": Run.open(run).summary,
            "tests": measure(trained.predictor, ROWS[row][0]),
            "measured": measuring.occasion(before),
        }
        path.write_text(json.dumps(found, ensure_ascii=False), "utf-8")
    return dict(json.loads(path.read_text("utf-8")))


def measure(predictor: Predictor, corpus: Corpus) -> dict[str, Any]:
    """Scores on the test parts, with some outputs to read."""
    results: dict[str, Any] = {}
    for test, files in corpus.tests.items():
        pairs = corpus.read(files)
        references = [pair.references for pair in pairs]
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
            "outputs": [
                {"source": pair.source, "references": pair.references, "output": output}
                for pair, output in list(zip(pairs, outputs, strict=True))[::100]
            ],
        }
    return results


def nearest(corpus: Corpus) -> float:
    """BLEU of the translation of the training sentence that is most like the source."""
    known = corpus.read(corpus.train)
    pairs = corpus.read(next(iter(corpus.tests.values())))
    vectors = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), sublinear_tf=True)
    table = vectors.fit_transform([pair.source for pair in known])
    found = [(row @ table.T).argmax() for row in vectors.transform(pair.source for pair in pairs)]
    return bleu([known[at].target for at in found], [pair.references for pair in pairs]).value


def figures_of(row: str, found: Mapping[str, Any]) -> Iterator[measuring.Figure]:
    """The lines of the page: means over the seeds."""
    corpus, recipe, _ = ROWS[row]
    seeds = found["seeds"]
    shown = [each["tests"][next(iter(corpus.tests))] for each in seeds]
    tokenised, cased, letters = ([test[name]["value"] for test in shown] for name in _FIGURES)
    mean = statistics.fmean
    tokens = mean(each["summary"]["target_tokens"] for each in seeds) / 1e6
    beside = f"the nearest training sentence's translation: {found['nearest_bleu']:.2f} BLEU"
    note = f"`{recipe}`, {_trainings(seeds, tokens)}"
    if corpus is TATOEBA:
        yield measuring.Figure(
            what=f"Tatoeba zh→en, cased detokenised BLEU / chrF, test: `{recipe}`",
            ours=f"{mean(cased):.2f} / {mean(letters):.2f}",
            beside=beside,
            note=note,
            parts=[row],
        )
        return
    spread = f"; {min(tokenised):.2f} to {max(tokenised):.2f}" if len(seeds) > 1 else ""
    yield measuring.Figure(
        what="Multi30k en→de, tokenised lower-cased BLEU, test 2016",
        ours=f"{mean(tokenised):.2f}",
        beside=f"published for half its width: {PUBLISHED}",
        note=note + spread,
        parts=[row],
    )
    yield measuring.Figure(
        what="Multi30k en→de, cased detokenised BLEU / chrF, test 2016",
        ours=f"{mean(cased):.2f} / {mean(letters):.2f}",
        beside=beside,
        parts=[row],
    )


def _trainings(trainings: Sequence[Mapping[str, Any]], tokens: float) -> str:
    """How many there are of how many millions of tokens, and how long they took where."""
    minutes: dict[str, list[float]] = {}
    for each in trainings:
        gpu = each["measured"]["machine"].get("gpu")
        minutes.setdefault(f" on an {gpu}" if gpu else "", []).append(each["minutes"])
    means = {place: f"in {statistics.fmean(taken):.0f} min" for place, taken in minutes.items()}
    if len(means) == 1:
        ((place, took),) = means.items()
        return f"seeds: {len(trainings)}, {tokens:.1f} M target tokens {took} each{place}"
    parts = ", ".join(f"{len(minutes[place])} {took}{place}" for place, took in means.items())
    return f"trainings: {len(trainings)}, {tokens:.1f} M target tokens each; {parts}"


def main() -> None:
    """Train and measure what is missing, and write the record."""
    parser = measuring.command(__doc__, work="folder of runs and results")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=[*ROWS], metavar="ROW")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--also", type=Path, nargs="*", default=[], help="work of other machines")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before = measuring.machine()
    rows = {}
    for row in arguments.only:
        seeds = [of_seed(arguments.work, row, seed) for seed in arguments.seeds]
        for folder in arguments.also:
            results = sorted(folder.glob(f"{row.replace(' ', '-')}-seed*.json"))
            seeds += [json.loads(path.read_text("utf-8")) for path in results]
        rows[row] = {"seeds": seeds, "nearest_bleu": nearest(ROWS[row][0])}
        print(*figures_of(row, rows[row]), sep="\n", flush=True)
    if arguments.dry:
        return
    measuring.write_rows(
        "translation",
        rows,
        title="Translation from scratch by shipped recipes",
        recipes={row: settings_of(recipe_of(row, 1)) for row in ROWS},
        figures=figures_of,
        details={},
        started_on=before,
    )


if __name__ == "__main__":
    main()
