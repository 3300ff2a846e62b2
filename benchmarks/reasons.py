"""Attention beside attribution: what the weights of a fine-tuned reader say of its reasons.

A pretrained encoder is fine-tuned on sst2 by ``regard train classification-pretrained``, with a
learned query on top that looks at all states. Of texts of a test part that is kept apart, every
method of ``rg.attribute`` says how much each word counts. Then words are replaced by ``[MASK]``,
those that count most first: the faster the label's probability falls, the better a method has found
what the label hangs on (comprehensiveness and sufficiency of DeYoung et al., 2020,
https://arxiv.org/abs/1911.03429). Beside all stands a random order. Labels are read once more with
even weights in place of the query's own (Jain & Wallace, 2019, https://arxiv.org/abs/1902.10186).

    python -m benchmarks.reasons --work FOLDER [--seeds 1 2 3]

Run again after an interruption, it goes on where it was; the record has the seeds that are there.
"""

import hashlib
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations
from operator import getitem
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import regard as rg
from benchmarks import measuring
from benchmarks.encoders import encoder
from benchmarks.naive_bayes import NaiveBayes
from benchmarks.training import settings_of, train
from regard.cli.jobs import parse_arguments
from regard.config import parse_settings
from regard.interop.attribution.faithfulness import rank_correlation
from regard.tasks import Recipe
from regard.tasks.labels.classification import LabelledText
from regard.text import BOS_ID, EOS_ID

BASELINE = "random"
LAST, ROLLOUT = "attention of the last layer", "rollout"  # as far as the query takes of them
METHODS = (
    *("attention", LAST, ROLLOUT, "attention_gradient"),  # the first is that of the query
    *("gradient_times_input", "integrated_gradients", "leave_one_out"),
)
SETTINGS = (
    *("training.learning_rate=1e-4", "training.epochs=1", "training.batch_tokens=1024"),
    *("training.warmup=40", "training.label_smoothing=0", "model.dropout=0.1", "head.dropout=0.1"),
    "head.pooling=query",
)
TEXTS, DRAWS, STEPS = measuring.sized((60, 1, 8), (2, 1, 2))
SHARES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)  # of a text's pieces
BINS = slice(1, 5)  # those over which comprehensiveness is a mean
# Written for the pages.
SENTENCES = (
    "the acting is good , but the story is not .",
    "it is not a bad film at all .",
    "a slow and silly story , saved by its wonderful cast .",
)
_TENTH = 10


def split(folder: Path) -> dict[str, Path]:
    """The training file without a tenth, that tenth, and the validation file."""
    lines = (measuring.corpora() / "sst2" / "train.tsv").read_text("utf-8").splitlines()
    parts: dict[bool, list[str]] = {True: [], False: []}
    for line in dict.fromkeys(lines):
        parts[_number(line.partition("\t")[0]) % _TENTH == 0].append(line)
    files = {"train": folder / "train.tsv", "test": folder / "test.tsv"}
    for name, file in files.items():
        file.write_text("".join(f"{line}\n" for line in parts[name == "test"]), "utf-8")
    return {**files, "valid": measuring.corpora() / "sst2" / "dev.tsv"}


def recipe_of(seed: int, files: Mapping[str, Path]) -> Recipe:
    held_out = (f"data.valid={files['valid']}", f"data.test={files['test']}")
    read = f"training.pretrained={encoder('minilm-en')}"
    arguments = parse_arguments(["classification-pretrained", str(files["train"])])
    return arguments.resolve(parse_settings([*held_out, read, *SETTINGS, f"training.seed={seed}"]))


class Reader:
    """A fine-tuned classifier that says what each piece of a text counts."""

    def __init__(self, predictor: Any, seed: int) -> None:
        self.model, self.task = predictor.model.eval(), predictor.task
        self.mask = self.task.tokenizer.names.index("[MASK]")
        self.random = torch.Generator().manual_seed(seed)

    def inputs(self, text: str) -> dict[str, Tensor]:
        """A text as the model reads it."""
        batch = self.task.collate(self.task.encode([LabelledText(text, None, None, "text")]))
        return {"ids": batch["ids"], "lengths": batch["lengths"]}

    @torch.no_grad()
    def probabilities(self, ids: Tensor) -> Tensor:
        """Of each label, (B, V), of texts of one length."""
        logits: Tensor = self.model(ids, torch.full((len(ids),), ids.shape[1]))
        return logits.float().softmax(dim=-1)

    def counts(self, inputs: Mapping[str, Tensor], label: int) -> dict[str, Tensor]:
        """Contribution of each position to a label, by each method, and at random."""
        found = {
            method: rg.attribute(
                self.model, inputs, target=label, method=method, baseline=self.mask, steps=STEPS
            ).values
            for method in METHODS
            if method not in (LAST, ROLLOUT)
        }
        with torch.no_grad(), rg.watch(self.model, top=0, map=1, keep=True) as seen:
            self.model(**inputs)
        positions = range(inputs["ids"].shape[1])
        query = found["attention"]
        found[LAST] = query @ seen.rows(-1, positions, "encoder")[0].mean(dim=0)
        found[ROLLOUT] = query @ seen.rollout(positions, "encoder")[0]
        return {method: found[method] for method in METHODS}

    def with_even_weights(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Probabilities of the labels where the learned query looks at all positions alike."""
        length = inputs["ids"].shape[1]
        with torch.no_grad(), rg.edit(self.model) as edits:
            edits.fix(0, [1 / length] * length, layer=0, kind="cross")
            logits: Tensor = self.model(**inputs)
        return logits[0].float().softmax(dim=-1)

    def pieces(self, ids: Tensor) -> Tensor:
        """Positions of the text's own pieces, without begin and end."""
        return ((ids[0] != BOS_ID) & (ids[0] != EOS_ID)).nonzero().flatten()


def reasons(reader: Reader, texts: Sequence[str]) -> dict[str, Any]:
    """Correlations, curves and what they add up to, means over texts."""
    rows: list[dict[str, Any]] = [_of_text(reader, text) for text in texts]
    names = list(rows[0]["deleted"])
    return {
        "texts": len(rows),
        "shares": SHARES,
        "pieces": sum(row["pieces"] for row in rows),
        "correlation": {
            f"{one} & {other}": mean_and_error([row["correlation"][one, other] for row in rows])
            for one, other in combinations(METHODS, 2)
        },
        "probability": mean_and_error([row["probability"] for row in rows]),
        **{
            way: {
                name: [
                    round(statistics.fmean(each), 4)
                    for each in zip(*(row[way][name] for row in rows), strict=True)
                ]
                for name in names
            }
            for way in ("deleted", "kept")
        },
        **{
            measure: {name: mean_and_error([row[measure][name] for row in rows]) for name in names}
            for measure in ("comprehensiveness", "sufficiency")
        },
        "labels that stay with even weights": mean_and_error([row["is_same"] for row in rows]),
        "moved by even weights": mean_and_error([row["moved"] for row in rows]),
    }


def _of_text(reader: Reader, text: str) -> dict[str, Any]:
    inputs = reader.inputs(text)
    ids, pieces = inputs["ids"], reader.pieces(inputs["ids"])
    whole, label = _likeliest(reader, ids)
    counts = {name: each[pieces] for name, each in reader.counts(inputs, label).items()}
    orders = {name: [each.argsort(descending=True)] for name, each in counts.items()}
    orders[BASELINE] = [torch.randperm(len(pieces), generator=reader.random) for _ in range(DRAWS)]
    row: dict[str, Any] = {
        "pieces": len(pieces),
        "probability": whole,
        "correlation": {
            pair: rank_correlation(counts[pair[0]].abs(), counts[pair[1]].abs())
            for pair in combinations(METHODS, 2)
        },
        **{part: {} for part in ("deleted", "kept", "comprehensiveness", "sufficiency")},
    }
    for name, several in orders.items():
        curves = torch.stack([_curves(reader, ids, pieces[order], label) for order in several])
        deleted, kept = curves.mean(dim=0)
        row["deleted"][name], row["kept"][name] = deleted.tolist(), kept.tolist()
        row["comprehensiveness"][name] = whole - float(deleted[BINS].mean())
        row["sufficiency"][name] = whole - float(kept[BINS].mean())
    even = reader.with_even_weights(inputs)
    row["is_same"] = float(int(even.argmax()) == label)
    row["moved"] = abs(float(even[label]) - whole)
    return row


def _likeliest(reader: Reader, ids: Tensor) -> tuple[float, int]:
    probability, label = reader.probabilities(ids)[0].max(dim=-1)
    return float(probability), int(label)


def _curves(reader: Reader, ids: Tensor, order: Tensor, label: int) -> Tensor:
    """The label's probability (2, shares): without the first pieces, and with them alone.

    ``order`` has the positions of the pieces, those that count most first.
    """
    texts = []
    for keeps in (False, True):
        for share in SHARES:
            count = math.ceil(share * len(order))
            changed = ids[0].clone()
            changed[order[count:] if keeps else order[:count]] = reader.mask
            texts.append(changed)
    found: Tensor = reader.probabilities(torch.stack(texts))[:, label]
    return found.view(2, -1)


def mean_and_error(values: Sequence[float]) -> dict[str, float]:
    """Mean and its standard error, of those that are numbers."""
    real = [value for value in values if not math.isnan(value)]
    spread = statistics.stdev(real) if len(real) > 1 else 0.0
    error = spread / math.sqrt(max(1, len(real)))
    return {"mean": round(statistics.fmean(real or [0.0]), 4), "error": round(error, 4)}


def examples(reader: Reader) -> list[dict[str, Any]]:
    """The sentences of the pages: pieces, and what each counts."""
    found = []
    for text in SENTENCES:
        inputs = reader.inputs(text)
        pieces = reader.pieces(inputs["ids"])
        probability, label = _likeliest(reader, inputs["ids"])
        counts = reader.counts(inputs, label)
        names = reader.task.tokenizer.names
        found.append(
            {
                "text": text,
                "label": reader.task.labels[label],
                "probability": round(probability, 4),
                "pieces": [names[piece] for piece in inputs["ids"][0, pieces].tolist()],
                "counts": {
                    name: [round(each, 4) for each in values[pieces].tolist()]
                    for name, values in counts.items()
                },
            }
        )
    return found


def measured(seed: int, work: Path) -> dict[str, Any]:
    """Fine-tune, read the held-out parts, and compare."""
    recipe = recipe_of(seed, split(work))
    trained = train(recipe, work / f"{seed}")
    task = trained.predictor.task
    train_part, valid, test = (task.read(recipe, part) for part in ("train", "valid", "test"))
    accuracy = {
        part: round(task.score(trained.predictor.answers(known), known)["accuracy"], 2)
        for part, known in {"valid": valid, "test": test}.items()
    }
    bayes = NaiveBayes((each.text, each.label) for each in train_part)
    right = [bayes.label(each.text) == each.label for each in test]
    texts = sorted((each.text for each in test), key=_number)[:TEXTS]
    reader = Reader(trained.predictor, seed)
    return {
        "recipe": settings_of(task.recipe),
        "minutes": round(trained.summary["seconds"] / 60, 1),
        "accuracy": {**accuracy, "naive Bayes": round(100 * statistics.mean(right), 2)},
        "test_texts": len(test),
        **reasons(reader, texts),
        "examples": examples(reader),
    }


def figures_of(rows: Mapping[str, Mapping[str, Any]]) -> list[measuring.Figure]:
    runs = [row["part"] for row in rows.values()]
    seeds = f"{len(runs)} seed{'s' * (len(runs) > 1)}, {runs[0]['texts']} texts"
    accuracy = of_seeds(runs, "accuracy", "test", digits=1)
    bayes = of_seeds(runs[:1], "accuracy", "naive Bayes", digits=1)  # it has no seed
    found = []
    for method, ours in (("attention", "attention"), ("leave_one_out", "leave-one-out")):
        value, random = (
            of_seeds(runs, "comprehensiveness", name, "mean") for name in (method, BASELINE)
        )
        found.append(
            measuring.Figure(
                what=f"sst2, minilm-en with a learned query: comprehensiveness of {ours}",
                ours=value,
                beside=f"a random order: {random}",
                note=f"{seeds}; accuracy {accuracy} %, naive Bayes {bayes} %",
            )
        )
    ours, other = (
        of_seeds(runs, "correlation", f"{one} & leave_one_out", "mean")
        for one in ("attention", "integrated_gradients")
    )
    what = "sst2, minilm-en with a learned query: rank correlation of attention and leave-one-out"
    beside = f"integrated gradients and leave-one-out: {other}"
    found.append(measuring.Figure(what=what, ours=ours, beside=beside, note=seeds))
    same = of_seeds(runs, "labels that stay with even weights", "mean", digits=1, unit=100)
    found.append(
        measuring.Figure(
            what="sst2, minilm-en with a learned query: labels that stay with even weights, %",
            ours=same,
            beside="with its own weights: 100",
            note=seeds,
        )
    )
    return found


def of_seeds(
    runs: Sequence[Mapping[str, Any]], *keys: str, digits: int = 2, unit: float = 1
) -> str:
    """The mean over seeds of a number of each run, with half their range."""
    return measuring.mean_of_seeds([unit * reduce(getitem, keys, run) for run in runs], digits)


def _number(text: str) -> int:
    return int(hashlib.sha1(text.encode()).hexdigest(), 16)


def main() -> None:
    parser = measuring.command(__doc__, work="where runs and figures are kept")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    work: Path = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    for seed in arguments.seeds:
        measuring.once(work / f"{seed}.json", lambda seed=seed: {"part": measured(seed, work)})
    rows = {
        f"seed {file.stem}": json.loads(file.read_text("utf-8"))
        for file in sorted(work.glob("*.json"))
    }
    figures = figures_of(rows)
    print(*figures, sep="\n")
    if not arguments.dry:
        measuring.write_record(
            "reasons",
            title="Attention beside attribution in a fine-tuned reader",
            figures=figures,
            details=rows,
            packages=("torch", "transformers"),
        )


if __name__ == "__main__":
    main()
