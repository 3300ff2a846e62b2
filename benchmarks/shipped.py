"""Figures of the recipes that come with regard, marked where a trivial baseline is as good.

`python -m benchmarks.tables` writes it for `regard recipes`, and marks the rows of its own tables.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks import quoting

FIGURES = "src/regard/recipes/figures.json"
MARK = "▼"


@dataclass(frozen=True, kw_only=True, slots=True)
class Trivial:
    """Numbers of a figure and of its baseline without a model, counted from zero."""

    place: str
    ours: int = 0
    beside: int = 0
    less_is_better: bool = False


# Of several numbers in a cell, the test part's, and of baselines the best.
TRIVIAL = (
    Trivial(place="question_answering: ESIM", beside=2),
    Trivial(place="question_answering: read side by side", beside=2),
    Trivial(place="question_answering: word overlap & first sentence", beside=3),
    Trivial(place="question_answering: exact match / F1", ours=1, beside=1),
    Trivial(place="question_answering: begins with a masked", ours=1, beside=1),
    Trivial(place="question_answering: Answers in Chinese", ours=1, beside=1),
    Trivial(place="question_answering: Multiple choice", beside=1),
    Trivial(place="documents", beside=1),
    Trivial(place="summarisation"),
    Trivial(place="classification: sst2"),
    Trivial(place="classification: chnsenticorp", ours=1, beside=1),
    Trivial(place="classification: online-shopping", ours=1, beside=1),
    Trivial(place="phrases: chnsenticorp", ours=1, beside=5),
    Trivial(place="phrases: online-shopping", ours=1, beside=7),
    Trivial(place="pretraining: sst2", ours=3, beside=7),
    Trivial(place="pretraining: chnsenticorp", ours=3, beside=7),
    Trivial(place="pretraining: online-shopping", ours=3, beside=7),
    Trivial(place="tagging: Parts of speech", ours=1, beside=1),
    Trivial(place="tagging: Entities", ours=1, beside=1),
    Trivial(place="language_modelling: Kneser-Ney", less_is_better=True),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """Sentences about a recipe, quoted by ``benchmarks.quoting``."""

    figure: str  # the measure, its number, and on what
    beside: str = ""  # what needs no model, and its number
    ours: str = ""  # the number again, to compare
    theirs: str = ""  # that of what needs no model
    minutes: str = ""  # how long it took, where the record says


def _measured(
    name: str, measure: str, on: str, beside: str, *, ours: int, theirs: int, minutes: int | None
) -> Measured:
    return Measured(
        figure=f"{measure} {{{name}.ours[{ours}]}}, {on}",
        beside=f"{beside} {{{name}.beside[{theirs}]}}",
        ours=f"{{{name}.ours[{ours}]}}",
        theirs=f"{{{name}.beside[{theirs}]}}",
        minutes="" if minutes is None else f"{{{name}.note[{minutes}]}}",
    )


def _phrasebook(name: str) -> Measured:
    return Measured(
        figure=f"{{{name}.ours[0]}} % right, phrasebook",
        minutes=f"{{{name}.note[0]}}",
    )


RECIPES: Mapping[str, Measured] = {
    "classification-recurrent": _measured(
        "sst2", "accuracy", "SST-2", "naive Bayes", ours=0, theirs=0, minutes=None
    ),
    "classification-transformer": _measured(
        "sst2", "accuracy", "SST-2", "naive Bayes", ours=1, theirs=0, minutes=None
    ),
    "classification-pretrained": _measured(
        "few_sst2", "accuracy", "SST-2", "naive Bayes", ours=3, theirs=7, minutes=None
    ),
    "classification-phrases": _measured(
        "phrases_hotels", "accuracy", "hotel reviews", "linear SVM", ours=1, theirs=5, minutes=None
    ),
    "classification-chinese": _measured(
        "shops", "accuracy", "shop reviews", "naive Bayes", ours=1, theirs=1, minutes=None
    ),
    "classification-aspect": _measured(
        "shops_aspect", "accuracy", "shop reviews", "naive Bayes", ours=1, theirs=1, minutes=None
    ),
    "tagging-words": _measured(
        "speech", "accuracy", "English EWT", "most frequent tag", ours=1, theirs=1, minutes=1
    ),
    "tagging-entities": _measured(
        "wnut", "F1", "WNUT-17", "entities met in training", ours=1, theirs=1, minutes=1
    ),
    "tagging-chinese-entities": _measured(
        "msra", "F1", "MSRA", "entities met in training", ours=1, theirs=1, minutes=1
    ),
    "question-answering": _measured(
        "spans", "F1", "squadshifts", "sliding window", ours=1, theirs=1, minutes=1
    ),
    "question-answering-pretrained": _measured(
        "pretrained_spans", "F1", "squadshifts", "sliding window", ours=1, theirs=1, minutes=1
    ),
    "question-answering-chinese": _measured(
        "chinese_spans", "F1", "CMRC 2018", "sliding window", ours=1, theirs=1, minutes=1
    ),
    "multiple-choice": _measured(
        "choices", "accuracy", "FairytaleQA", "longest overlap", ours=0, theirs=1, minutes=1
    ),
    "pair-matching": _measured(
        "esim", "accuracy", "squadshifts", "logistic regression", ours=0, theirs=2, minutes=1
    ),
    "pair-matching-cross": _measured(
        "side_by_side",
        "accuracy",
        "squadshifts",
        "logistic regression",
        ours=0,
        theirs=2,
        minutes=1,
    ),
    "sentence-selection": _measured(
        "hop", "accuracy", "squadshifts", "rare word overlap", ours=0, theirs=3, minutes=1
    ),
    "generation-copy": _measured(
        "written", "ROUGE-L", "FairytaleQA", "best-overlap sentence", ours=0, theirs=1, minutes=0
    ),
    "generation-transformer": _measured(
        "written_transformer",
        "ROUGE-L",
        "FairytaleQA",
        "best-overlap sentence",
        ours=0,
        theirs=1,
        minutes=0,
    ),
    "summarisation": _measured(
        "titles", "ROUGE-L", "ACL titles", "first sentence", ours=0, theirs=0, minutes=None
    ),
    "summarisation-chinese": _measured(
        "chinese_titles", "ROUGE-L", "CSL titles", "first words", ours=0, theirs=0, minutes=None
    ),
    "language-model-characters": Measured(figure="loss {nanogpt.ours[0]}, Tiny Shakespeare"),
    "language-model-characters-fast": Measured(
        figure="loss {shakespeare.ours[0]}, Tiny Shakespeare"
    ),
    "rnn-fixed": _phrasebook("fixed"),
    "rnn-luong-general": _phrasebook("general"),
    "rnn-luong-location": _phrasebook("location"),
    "rnn-local-m": _phrasebook("local_m"),
    "rnn-local-p": _phrasebook("local_p"),
    "transformer-batch-norm": _phrasebook("batch_norm"),
    "transformer-muon": Measured(
        figure="BLEU {tatoeba.ours[0]}, Tatoeba zh→en", minutes="{tatoeba.note[2]}"
    ),
    # Its minutes are those of a GPU, which few have.
    "transformer-small": Measured(figure="BLEU {multi30k.ours[0]}, Multi30k"),
}


def recipe_figures(quoted: Mapping[str, quoting.Numbers]) -> str:
    found = {}
    for name, measured in RECIPES.items():
        said = {field: quoting.say(text, quoted) for field, text in asdict(measured).items()}
        ours, theirs, minutes = (said.pop(key) for key in ("ours", "theirs", "minutes"))
        loses = bool(theirs) and float(ours) <= float(theirs)
        found[name] = {**said, "loses": loses, "minutes": float(minutes) if minutes else None}
    return json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def cells(
    figure: Mapping[str, str], marked: Sequence[Mapping[str, str]]
) -> tuple[str, str, str, str]:
    """The cells of a figure's row, ours with a mark if it is among those that are no better."""
    mark = f" {MARK}" if figure in marked else ""
    return figure["what"], f"{figure['ours']}{mark}", figure["beside"], figure["note"]


def no_better(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, str]]:
    """The figures that are no better than what needs no model; of records there are."""
    found = []
    names = {record["name"] for record in records}
    for trivial in TRIVIAL:
        if trivial.place.partition(": ")[0] not in names:
            continue
        figures = quoting.find(records, trivial.place)
        if not figures:
            raise quoting.QuoteError(f"{trivial.place!r} must mean a figure; it means none.")
        for figure in figures:
            numbers = quoting.Numbers.of(figure)
            try:
                ours, theirs = numbers.ours[trivial.ours], numbers.beside[trivial.beside]
            except IndexError:
                raise quoting.QuoteError(f"{figure['what']!r} has too few numbers.") from None
            difference = float(ours) - float(theirs)
            if (difference >= 0) if trivial.less_is_better else (difference <= 0):
                found.append(figure)
    return found
