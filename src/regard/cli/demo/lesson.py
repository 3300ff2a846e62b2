"""``regard demo --train``: a translator learns the phrasebook, and is tested."""

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from regard.cli.demo import PAGE, SENTENCE, SENTENCES, TYPING_PAGE
from regard.cli.output import note, say
from regard.progress import progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regard.inference import Predictor
    from regard.text.phrasebook import Phrase

T = TypeVar("T")

# Examples on the page besides the first, and translations that are printed.
_ON_PAGE, _PRINTED = 12, 8
# Sentences beyond the phrasebook's grammar, with their meaning and the fault of their translation.
_OUTSIDE = (
    (
        "他说他明天不来。",
        "He says he will not come tomorrow.",
        "no training sentence reports what somebody says",
    ),
    (
        "我昨天买的书很贵，但是很有意思。",
        "The book that I bought yesterday is very expensive, but very interesting.",
        "in training 但是 always follows 虽然",
    ),
    ("没有人喜欢他。", "Nobody likes him.", "in training nobody is ever 没有人"),
)


def teach(run: Path) -> None:
    """Train a translator where there is none, test it, and write its pages."""
    predictor = _predictor(run)  # says something before torch is imported: the first time is slow
    from regard.cli.demo.pages import write_page, write_typing_page
    from regard.inference.alignment import alignment_errors
    from regard.text.phrasebook import handwritten, phrases
    from regard.viewer import draw_attention

    test = phrases("test")
    by_source = {phrase.source: phrase for phrase in reversed(test)}
    first = predictor.use.look(SENTENCE, gold=by_source.get(SENTENCE)).document.examples[0]
    say(f"{first.source} → {first.output}\n\n{draw_attention(first)}\n")
    outputs = _outputs(predictor, test)
    new, written = phrases("new"), handwritten()
    say("within the phrasebook's grammar, which also wrote the training sentences:")
    say(_exact_match("test sentences", outputs, test))
    say(_exact_match("sentences with new combinations", _outputs(predictor, new), new))
    say("  (two words or two constructions in them are together in no training sentence)")
    say(_exact_match("sentences that the authors wrote", _outputs(predictor, written), written))
    say(f"{alignment_errors(predictor, test)}\n")
    for phrase, output in _spread(list(zip(test[1:], outputs[1:], strict=True)), _PRINTED):
        is_right = output in phrase.references
        say(f"  {phrase.source} → {output}{'' if is_right else f'  (right: {phrase.target})'}")
    say("\noutside its grammar:")
    outside = predictor.translate([source for source, _, _ in _OUTSIDE])
    for (source, right, why), best_first in zip(_OUTSIDE, outside, strict=True):
        say(f"  {source} → {best_first.best.text}")
        say(f"    right: {right} ({why})")
    say()
    examples = [
        predictor.use.look(phrase.source, gold=phrase).document.examples[0]
        for phrase in _spread(test[1:], _ON_PAGE)
    ]
    write_page(predictor, [first, *examples], run / PAGE)
    write_typing_page(predictor, [SENTENCE, *SENTENCES[-2:]], run / TYPING_PAGE)
    say(f"Try your own: regard look {run} 我们明天去北京")


def _predictor(run: Path) -> "Predictor":
    """The translator of a finished run, or a new one."""
    training = "training a Chinese-to-English translator on the built-in phrasebook"
    if is_new := not run.exists():
        note(training)
    from regard.inference import Predictor
    from regard.runs import Run, is_run

    if is_run(run) and Run.open(run).is_finished:
        note(f"using the translator in {run}; delete that folder to train it again")
        return Predictor.load(run)
    from regard.cli.demo.training import trained

    if not is_new:
        note(training)
    return trained(run)


def _outputs(predictor: "Predictor", phrases: "Sequence[Phrase]") -> list[str]:
    sources = [phrase.source for phrase in phrases]
    with progress("translating", len(phrases)) as advance:
        translations = predictor.translate(sources, beam_size=1, progress=advance)
    return [hypotheses[0].text for hypotheses in translations]


def _exact_match(name: str, outputs: "Sequence[str]", phrases: "Sequence[Phrase]") -> str:
    from regard.metrics import exact_match

    right = exact_match(outputs, [phrase.references for phrase in phrases])
    return f"exact match on {len(phrases):,} {name}: {right.value:.1f} % (greedy)"


def _spread(items: "Sequence[T]", count: int) -> "Sequence[T]":
    """About ``count`` items, evenly spread."""
    return items[:: max(1, len(items) // count)][:count]
