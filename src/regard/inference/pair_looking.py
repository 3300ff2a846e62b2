"""What a model that reads two texts beside each other looked at from one to the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor

from regard.attention import Seen, weights_seen
from regard.inference.searching import END
from regard.models import PairClassifier
from regard.tasks.text_pairs import pair_model
from regard.text import Piece
from regard.viewer import Answer, AttentionMap, Example, Text, Token

# Tokens up to which what a text looked at in itself is kept too.
_LONGEST_WITHIN = 64

TextSide = Literal["source", "output"]
Places = Mapping[tuple[str, int], Seen]


@dataclass(frozen=True, slots=True)
class Side:
    """One of two texts.

    Attributes:
        name: What it is called on the page.
        text: It, and the tokens of it that were read.
        first: Where in the model's rows its first token stands, of those that it reads.
        read: The places of the tokens that were read, among its tokens.
    """

    name: str
    text: Text
    first: int
    read: range


@dataclass(frozen=True, slots=True)
class Beside:
    """Two texts in the rows of a model.

    Attributes:
        text: The one that is answered about, or that answers: ``pair.ids``.
        other: The one beside it: ``pair.other``.
        row: Which of the rows.
        is_one_row: Whether both stand in one row, and look at themselves and each other.
        looking: Where they do not, which of them looks in which layer; in others the text does.
    """

    text: Side
    other: Side
    row: int
    is_one_row: bool
    looking: Mapping[int, Side]


def looks_between(
    labeller: Any, example: Any, encoded: Any, answer: Any, seen: Places, said: Answer
) -> list[Example]:
    """An example for each direction in which a model looks from one text to the other.

    The text that looks is the output, whose tokens are the rows; what it looks at is the source.
    Marks of begin and end are left out, so rows may sum to less than one. A model that does not
    attend gives none.

    Args:
        labeller: The model in use.
        example: What was asked.
        encoded: The same as ids.
        answer: What it answered.
        seen: Its calls of attention, with an axis of heads.
        said: The answer, as it is shown; its tags, if it has such, are those of the text.
    """
    task = labeller.task.recipe.task
    both = _SIDES[task](labeller.task, example, encoded, answer)
    directions = [(both.other, both.text), (both.text, both.other)]
    found = []
    for rows, columns in directions if task != "multiple_choice" else reversed(directions):
        maps = _maps(seen, both, rows, columns)
        if any(each.kind == "cross" for each in maps):
            side: TextSide = "source" if columns is both.text else "output"
            found.append(
                Example(
                    source=columns.text.text,
                    output=rows.text.text,
                    source_tokens=columns.text.tokens,
                    output_tokens=rows.text.tokens,
                    maps=tuple(maps),
                    started=False,
                    label=f"{rows.name} looks at {columns.name}",
                    answer=replace(said, side=side),
                )
            )
    return found


def _maps(seen: Places, both: Beside, rows: Side, columns: Side) -> list[AttentionMap]:
    found = []
    for (kind, layer), call in seen.items():
        N = call.query.shape[-2]  # of a pooling it is 1
        if both.is_one_row:
            if kind != "encoder":
                continue  # what the head pools
            whole = _row(call, both.row)
            for name, looks, seen_by in (("cross", rows, columns), ("encoder", columns, columns)):
                if name == "cross" or len(looks.text.tokens) <= _LONGEST_WITHIN:
                    found += _heads(name, layer, whole, looks, seen_by)
        elif kind == "cross" and N > 1 and both.looking.get(layer, both.text) is rows:
            found += _heads("cross", layer, _row(call, both.row), rows, columns)
    return found


def _row(call: Seen, row: int) -> Float[Tensor, "H N M"]:
    """The weights of one of the rows of a call."""
    rows = call.query.shape[0]
    found = weights_seen(call)
    return found[min(row, rows - 1)]


def _heads(
    kind: str, layer: int, whole: Float[Tensor, "H N M"], looks: Side, seen_by: Side
) -> list[AttentionMap]:
    """The part of each head's weights that is between tokens of two texts."""
    found = []
    for head, each in enumerate(whole):
        part = each[
            looks.first : looks.first + len(looks.read),
            seen_by.first : seen_by.first + len(seen_by.read),
        ]
        shown = part.new_zeros(len(looks.text.tokens), len(seen_by.text.tokens))
        shown[looks.read.start : looks.read.stop, seen_by.read.start : seen_by.read.stop] = part
        found.append(AttentionMap(kind=kind, layer=layer, head=head, rows=shown.tolist()))  # type: ignore[arg-type]
    return found


def _question_and_text(job: Any, example: Any, encoded: Any, answer: Any) -> Beside:
    """A question beside the window of its text that the answer stands in."""
    tokens = tuple(
        Token(text=encoded.context[start:end], start=start, end=end) for start, end in encoded.spans
    )
    windows = job._windows(encoded)
    held = [place for place, (start, _) in enumerate(encoded.spans) if start == answer.start]
    row = next((row for row, window in enumerate(windows) if held and held[0] in window), 0)
    text = Text(text=encoded.context, tokens=tokens)
    asked = _text(job, example.text, len(encoded.pair.other))
    return _beside(job, ("text", text, windows[row]), ("question", asked), row)


def _two_texts(job: Any, example: Any, encoded: Any, answer: Any) -> Beside:
    second = _text(job, example.second, len(encoded.pair.ids))
    first = _text(job, example.first, len(encoded.pair.other))
    return _beside(job, ("second", second, range(len(second.tokens))), ("first", first), 0)


def _choice_and_text(job: Any, example: Any, encoded: Any, answer: Any) -> Beside:
    """The question and the answer chosen, beside their text."""
    pair = encoded.pairs[answer.place]
    asked, chosen = job.tokenizer.pieces(example.text), job.tokenizer.pieces(answer.answer)
    place = len(example.text)
    tokens = (
        *_tokens(asked),
        Token(text=END, start=place, end=place),
        *_tokens(chosen, place + 1),
    )[-len(pair.ids) :]
    said = Text(text=f"{example.text} {answer.answer}", tokens=tokens)
    context = _text(job, example.context, len(pair.other))
    return _beside(job, ("answer", said, range(len(tokens))), ("text", context), answer.place)


# How the texts of a task stand beside each other.
_SIDES = {
    "multiple_choice": _choice_and_text,
    "pair_matching": _two_texts,
    "question_answering": _question_and_text,
}
PAIRS = frozenset(_SIDES)


def _beside(job: Any, text: tuple[str, Text, range], other: tuple[str, Text], row: int) -> Beside:
    name, read_text, read = text
    count = len(other[1].tokens)
    model = pair_model(job.recipe)
    is_one_row = not model.reads_apart
    # begin other end text end; or begin text, and other end, each by itself.
    firsts = (count + 2, 1) if is_one_row else (1, 0)
    beside = Side(other[0], other[1], firsts[1], range(count))
    looking = {0: beside} if issubclass(model, PairClassifier) else {}
    return Beside(Side(name, read_text, firsts[0], read), beside, row, is_one_row, looking)


def _text(job: Any, text: str, count: int) -> Text:
    """A text and the first of its pieces."""
    return Text(text=text, tokens=_tokens(job.tokenizer.pieces(text)[:count]))


def _tokens(pieces: Sequence[Piece], shift: int = 0) -> tuple[Token, ...]:
    return tuple(
        Token(text=piece.text, start=piece.start + shift, end=piece.end + shift) for piece in pieces
    )
