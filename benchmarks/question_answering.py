"""Questions about texts with the shipped recipes: spans, choices, pairs, sentences.

Each recipe is trained from scratch on its corpus' training part, its weights are chosen by the
development part, and both that and the test part are read once at the end, beside answers that take
no network. Of CMRC 2018 there is no training part here: the trial part is trained on, the
development part is the test.

    python -m benchmarks.question_answering --work FOLDER [--only NAME ...] [--pretrained RUN]

``--pretrained`` is the run of a masked language model on English text that holds no question, for
the run that begins with one. Run again after an interruption, the script goes on where it was.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import measuring
from benchmarks.training import held_out, settings_of, train
from regard.cli.jobs import parse_arguments
from regard.config import parse_settings
from regard.tasks import Recipe, read_parts
from regard.tasks.overlap import Overlap
from regard.tasks.questions.pair_matching import PairMatching
from regard.tasks.questions.sentence_selection import SentenceSelection

DOMAINS = ("wiki", "reddit", "amazon")
FILES = {
    "squadshifts": {
        "train": [f"squadshifts/{domain}.train.json.gz" for domain in DOMAINS],
        "valid": [f"squadshifts/{domain}.dev.json" for domain in DOMAINS],
        "test": [f"squadshifts/{domain}.test.json" for domain in DOMAINS],
    },
    "fairytaleqa": {
        "train": ["fairytaleqa/train.jsonl.gz"],
        "valid": ["fairytaleqa/val.jsonl.gz"],
        "test": ["fairytaleqa/test.jsonl.gz"],
    },
    "cmrc2018": {"train": ["cmrc2018/trial.json"], "valid": [], "test": ["cmrc2018/dev.json.gz"]},
}
PRETRAINED = "spans-pretrained"
# Name of a run: recipe, corpus, and what is set besides.
RUNS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "spans": ("question-answering", "squadshifts", ()),
    PRETRAINED: ("question-answering-pretrained", "squadshifts", ()),
    # Left out: a question of the trial part without words; passages alone in their article.
    "spans-chinese": ("question-answering-chinese", "cmrc2018", ("data.on_bad_line=skip",)),
    "choices": ("multiple-choice", "fairytaleqa", ()),
    "pairs-esim": ("pair-matching", "squadshifts", ("data.on_bad_line=skip",)),
    "pairs-cross": ("pair-matching-cross", "squadshifts", ("data.on_bad_line=skip",)),
    "sentences": ("sentence-selection", "squadshifts", ()),
    "sentences-three-hops": ("sentence-selection", "squadshifts", ("model.num_hops=3",)),
}
SIMPLE = "simple"
PARTS = (*RUNS, SIMPLE)


def recipe_of(name: str, pretrained: Path | None) -> Recipe:
    shipped, corpus, settings = RUNS[name]
    files = {
        split: [str((measuring.corpora() / file).resolve()) for file in listed]
        for split, listed in FILES[corpus].items()
    }
    said = [f"data.{split}={json.dumps(listed)}" for split, listed in files.items()]
    if name == PRETRAINED:
        said.append(f"training.pretrained={pretrained}")
    return parse_arguments([shipped]).resolve(parse_settings([*said, *settings]))


def trainings(work: Path) -> dict[str, Recipe]:
    """The trainings of the record, by the names of its rows."""
    return {name: recipe_of(name, None) for name in RUNS if name != PRETRAINED}


def trained_figures(name: str, work: Path, pretrained: Path | None) -> dict[str, Any]:
    """Train one run and read its held-out files."""
    recipe = recipe_of(name, pretrained)
    trained = train(recipe, work / name)
    splits = [split for split in ("valid", "test") if recipe.files(split)]
    known = [*read_parts(recipe).train]
    return {
        "recipe": {
            "name": RUNS[name][0],
            "set": list(RUNS[name][2]),
            **settings_of(trained.predictor.task.recipe),
        },
        "parameters": sum(p.numel() for p in trained.predictor.model.parameters()),
        "summary": trained.summary,
        **{split: held_out(trained.predictor, known, split) for split in splits},
    }


def simple_figures() -> dict[str, Any]:
    """The strongest answers without a network, to pairs and of sentences, by kind of run."""
    pairs, sentences = recipe_of("pairs-cross", None), recipe_of("sentences", None)
    known = [*read_parts(sentences).train]
    job = SentenceSelection.learn(sentences, known)
    found: dict[str, Any] = {"pairs": logistic_regression(pairs), "sentences": {}}
    for split in ("valid", "test"):
        examples = job.read(sentences, split)
        name = "rare word overlap"
        score = job.score(job.baselines(known, examples)[name], examples)
        found["sentences"][split] = {name: score}
    return found


def logistic_regression(recipe: Recipe) -> dict[str, Any]:
    """Accuracy of labels from the numbers of overlap alone, as smooth as validation likes best."""
    known = [*read_parts(recipe).train]
    overlap = Overlap.learn(dict.fromkeys(example.second for example in known))

    def inputs(examples: Sequence[Any]) -> tuple[list[list[float]], list[str]]:
        rows = [overlap.features(example.first, example.second) for example in examples]
        return rows, [example.label for example in examples]

    train, valid = inputs(known), inputs(PairMatching.read(recipe, "valid"))
    models = {
        smooth: make_pipeline(StandardScaler(), LogisticRegression(C=smooth, max_iter=1000))
        for smooth in (0.01, 0.1, 1.0, 10.0)
    }
    scores = {c: model.fit(*train).score(*valid) for c, model in models.items()}
    best = models[max(scores, key=lambda c: scores[c])]
    test = inputs(PairMatching.read(recipe, "test"))
    name = "logistic regression on overlap"
    return {
        split: {name: {"accuracy": 100 * float(best.score(*rows))}}
        for split, rows in (("valid", valid), ("test", test))
    }


WHAT = {
    "spans": "Answers in English texts (squadshifts), exact match / F1, test",
    PRETRAINED: "The same by a Transformer that begins with a masked language model",
    "spans-chinese": "Answers in Chinese texts (cmrc2018 dev, 1,002 questions trained on)",
    "choices": "Multiple choice among 4 (fairytaleqa), accuracy, test",
    "pairs-esim": "Question with its passage or another (squadshifts), ESIM, accuracy, test",
    "pairs-cross": "Question with its passage or another, read side by side, accuracy, test",
    "sentences": "Sentence with the answer (squadshifts), memory network, one hop, accuracy, test",
    "sentences-three-hops": "The same with 3 hops",
}


def figures_of(parts: dict[str, Any]) -> list[measuring.Figure]:
    found = []
    simple = parts.get(SIMPLE, {})
    for name, part in parts.items():
        if name == SIMPLE:
            continue
        test = part["test"]
        more = simple.get(name.partition("-")[0], {}).get("test", {})
        baselines = {**test["baselines"], **more}
        beside = "; ".join(f"{way}: {_shown(score)}" for way, score in baselines.items())
        summary = part["summary"]
        seconds = summary["seconds"]
        found.append(
            measuring.Figure(
                what=WHAT[name],
                ours=_shown(test["score"]),
                beside=beside,
                note=f"`{part['recipe']['name']}`, {summary['updates']:,} updates in "
                f"{max(1, seconds / 60):.0f} min",
                parts=[name],
            )
        )
    return found


def _shown(score: dict[str, float]) -> str:
    return " / ".join(f"{value:.1f}" for value in score.values())


def main() -> None:
    parser = measuring.command(__doc__, work="where runs and figures are kept")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--pretrained", type=Path, help="run of a masked language model")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    work, pretrained, facts = arguments.work, arguments.pretrained, measuring.machine()
    only = [name for name in arguments.only if name != PRETRAINED or pretrained is not None]

    def measure(name: str) -> dict[str, Any]:
        return simple_figures() if name == SIMPLE else trained_figures(name, work, pretrained)

    done = measuring.parts_in(work, PARTS, only, measure)
    figures = figures_of(done)
    print(*figures, sep="\n")
    missing = [name for name in PARTS if name not in done]
    if arguments.dry:
        return
    measuring.write_record(
        "question_answering",
        title="Questions about texts from scratch: spans, choices, pairs, sentences",
        figures=figures,
        details={
            "threads": arguments.threads,
            "not measured": missing,
            "runs": {name: part for name, part in done.items() if name != SIMPLE},
            SIMPLE: done.get(SIMPLE),
        },
        packages=("torch", "sentencepiece"),
        started_on=facts,
    )


if __name__ == "__main__":
    main()
