"""``regard demo --small``: few pairs, a recurrent translator with attention and one without."""

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.demo import SMALL_PAGE
from regard.cli.output import note, say
from regard.config import JsonValue
from regard.files import write_file

if TYPE_CHECKING:
    from regard.text.phrasebook import Phrase
    from regard.viewer.experiment import TrainedArm

_PAIRS, _POOL, _TESTED, _SHOWN, _UPDATES = 600, 800, 100, 4, 300
# The recipes, which differ in their attention, and their names on the page.
_ARMS = {
    "rnn-fixed": ("without attention", "没有注意力"),
    "rnn-attention": ("with attention", "有注意力"),
}


def experiment(folder: Path) -> None:
    """Train both on the same pairs, test them on others, and write one page of both."""
    note(
        f"training two recurrent translators on {_PAIRS} pairs of the built-in phrasebook, without "
        "attention and with it: a minute or two"
    )
    from regard.kernels import uncompiled
    from regard.viewer.experiment import experiment_page

    train, test = _pairs()
    folder.mkdir(parents=True, exist_ok=True)
    for name, phrases in (("train.tsv", train), ("test.tsv", test)):
        lines = "".join(f"{phrase.source}\t{phrase.target}\n" for phrase in phrases)
        write_file(folder / name, lines.encode())
    with uncompiled():
        arms = [_arm(recipe, folder, test) for recipe in _ARMS]
    for arm in arms:
        say(f"{arm.name[0]}: BLEU {arm.bleu:.1f} on {len(test)} sentences that were not trained on")
        for example, score, phrase in zip(arm.examples, arm.scores, test, strict=False):
            right = "" if example.output == phrase.target else f"; right: {phrase.target}"
            say(f"  {example.source} → {example.output}  (BLEU {score:.0f}{right})")
    answers = [phrase.target for phrase in test[:_SHOWN]]
    path = folder / SMALL_PAGE
    write_file(path, experiment_page(arms, answers, tested=len(test)).encode())
    say(f"The page with loss curves, outputs and heat maps: {path.resolve()}")
    say(f"Try your own: regard look {folder / 'rnn-attention'} {test[0].source}")


def _pairs() -> "tuple[list[Phrase], list[Phrase]]":
    """The pairs with the commonest words: some to train on, others of the same words to test on."""
    from regard.text.phrasebook import phrases

    every = phrases("train")
    counts = Counter(word for phrase in every for word in {*_words(phrase)})
    every.sort(key=lambda phrase: -min(counts[word] for word in _words(phrase)))
    common = list({phrase.source.rstrip("。"): phrase for phrase in every[:_POOL]}.values())
    random.Random(0).shuffle(common)
    train, candidates = common[:_PAIRS], common[_PAIRS:]
    vocabulary = {word for phrase in train for word in _words(phrase)}
    test = [phrase for phrase in candidates if vocabulary.issuperset(_words(phrase))]
    return train, test[:_TESTED]


def _words(phrase: "Phrase") -> list[str]:
    return [*phrase.source, *phrase.target.split()]


def _arm(recipe: str, folder: Path, test: "list[Phrase]") -> "TrainedArm":
    """One of the two: trained, or as it is in the folder, and tested."""
    from regard.metrics import bleu
    from regard.runs import Run
    from regard.training import ConsoleReporter, train
    from regard.viewer.experiment import TrainedArm

    note(_ARMS[recipe][0])
    settings: dict[str, JsonValue] = {
        **{f"data.{part}": str(folder / "test.tsv") for part in ("valid", "test")},
        **dict.fromkeys(("training.updates", "training.validate_every"), _UPDATES),
        "training.batch_tokens": 512,
    }
    if recipe == "rnn-attention":  # embeddings tell nothing of other words: it has to look at each
        settings["model.values"] = "embeddings"
    run = folder / recipe
    data, reporter = folder / "train.tsv", ConsoleReporter(quiet=True)
    predictor = train(recipe, run, data=data, settings=settings, reporter=reporter).predictor
    sources, references = [phrase.source for phrase in test], [phrase.references for phrase in test]
    outputs = [best_first[0].text for best_first in predictor.translate(sources)]
    examples = predictor.use.look(sources[:_SHOWN], explain=False).document.examples
    losses = [
        (int(str(record["update"])), float(str(record["loss"])))
        for record in Run.open(run).metrics()
        if record["split"] == "train"
    ]
    return TrainedArm(
        name=_ARMS[recipe],
        losses=losses,
        examples=examples,
        scores=[
            bleu([example.output], [right]).value
            for example, right in zip(examples, references, strict=False)
        ],
        bleu=bleu(outputs, references).value,
    )
