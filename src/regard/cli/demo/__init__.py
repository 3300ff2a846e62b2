"""``regard demo``."""

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from regard.cli.output import note, say, write_file
from regard.errors import SettingError
from regard.progress import progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regard.inference import Predictor
    from regard.text.phrasebook import Phrase

T = TypeVar("T")

SENTENCE = "我爱中国"
PAGE, TYPING_PAGE = "attention.html", "type.html"
# Examples on the page besides the first, and translations that are printed.
_ON_PAGE, _PRINTED = 12, 8
_TO_TYPE = ("他昨天去北京了", "我们明天在学校看书")  # offered on the page besides the first
# Sentences beyond the phrasebook's grammar, with their meaning and what goes wrong with them.
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


def demo(*, run: Path = Path("regard-demo")) -> None:
    """Train a small Chinese-to-English translator, and see what it looks at.

    Example: `regard demo`

    Takes a minute or two on a laptop, the first time, and says how long as it begins. Then try a
    sentence of your own: `regard look regard-demo 他昨天去北京了`

    Args:
        run: Its run folder. A finished one is used as it is.
    """
    predictor = _predictor(run)  # says something before torch is imported: the first time is slow
    from regard.inference.alignment import alignment_errors
    from regard.inference.live import live_page
    from regard.inference.looking import document, look_at
    from regard.text.phrasebook import handwritten, phrases
    from regard.viewer import draw_attention, page

    test = phrases("test")
    known = {phrase.source: phrase for phrase in reversed(test)}
    first = look_at(predictor, SENTENCE, phrase=known.get(SENTENCE))
    say(f"{first.source} → {first.output}")
    say()
    say(str(draw_attention(first)))
    say()
    outputs = _outputs(predictor, test)
    new, written = phrases("new"), handwritten()
    say("within the phrasebook's grammar, which also wrote the training sentences:")
    say(_exact_match("test sentences", outputs, test))
    say(_exact_match("sentences with new combinations", _outputs(predictor, new), new))
    say("  (two words or two constructions in them are together in no training sentence)")
    say(_exact_match("sentences written by hand", _outputs(predictor, written), written))
    say(str(alignment_errors(predictor, test)))
    say()
    for phrase, output in _spread(list(zip(test[1:], outputs[1:], strict=True)), _PRINTED):
        is_right = output in phrase.references
        say(f"  {phrase.source} → {output}{'' if is_right else f'  (right: {phrase.target})'}")
    say()
    say("outside its grammar:")
    outside = predictor.translate([source for source, _, _ in _OUTSIDE])
    for (source, right, why), best_first in zip(_OUTSIDE, outside, strict=True):
        say(f"  {source} → {best_first.best.text}")
        say(f"    right: {right} ({why})")
    say()
    examples = [
        look_at(predictor, phrase.source, phrase=phrase) for phrase in _spread(test[1:], _ON_PAGE)
    ]
    title = "What a translator looks at"
    path = run / PAGE
    write_file(path, page(document(predictor, [first, *examples], title=title)))
    say(f"The page with the attention of {1 + len(examples)} sentences: {path.resolve()}")
    typing = run / TYPING_PAGE
    try:
        write_file(typing, live_page(predictor, [SENTENCE, *_TO_TYPE]))
        say(f"The page with the translator in it, for sentences of yours: {typing.resolve()}")
    except SettingError as reason:  # a translator of other settings, which lay in the folder
        say(f"There is no page to type into: {reason}")
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
