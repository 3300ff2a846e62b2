"""Drawings of examples for a terminal: predictions and attention."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from regard.errors import SettingError
from regard.viewer.example import Example, Token, View
from regard.viewer.image import draw_image
from regard.viewer.table import draw_layers
from regard.viewer.terminal import draw_text, shown, width_of
from regard.viewer.texts import in_one_line

# Labels, and tokens of the largest values, that are listed; characters of a text.
_MOST_LABELS, _MOST_TOKENS, _LONGEST = 6, 8, 120
_BAR = 30


def draw_examples(examples: Iterable[Example], opening: View | None = None) -> str:
    """Each example as far as a terminal can show it, one below the other.

    Of two texts that look at each other the first example is drawn alone: the other is for a page.

    Args:
        examples: What there is to look at.
        opening: The layer of attention to the source that is drawn; None draws the mean of all.

    Raises:
        SettingError: ``opening`` names a layer that the model does not have.

    Example:
        >>> from regard.viewer import Prediction
        >>> nothing = {"output": "", "source_tokens": (), "output_tokens": ()}
        >>> good, bad = (Prediction(labels=(each,)) for each in (("good", 0.75), ("bad", 0.5)))
        >>> examples = [
        ...     Example(source="好吃", answer=good, **nothing),
        ...     Example(source="难吃", answer=bad, **nothing),
        ... ]
        >>> print(draw_examples(examples))
        好吃
        <BLANKLINE>
        good  ██████████████████████▌         0.750
        <BLANKLINE>
        难吃
        <BLANKLINE>
        bad  ███████████████                 0.500
    """
    layer = opening.layer if opening is not None and opening.kind == "cross" else "mean"
    blocks: list[str] = []
    before: Example | None = None
    for example in examples:
        if before is None or not _is_reverse(example, before):
            blocks += _blocks(example, None if layer == "mean" else layer)
            before = example
    return "\n\n".join(blocks)


def draw_answer(example: Example) -> str:
    """The text, its labels with bars, its words with tags, its tokens with the largest values.

    Of two texts the one that is not spoken of, such as the question, comes first, and in the other
    what is tagged, such as its answer, stands in brackets. A picture is drawn, beside it the values
    of its parts.

    Raises:
        AssertionError: Nothing was said.

    Example:
        >>> from regard.viewer import Prediction, Token
        >>> tokens = (Token(text="好", start=0, end=1), Token(text="吃", start=1, end=2))
        >>> said = Prediction(labels=(("good", 0.75), ("bad", 0.25)), values=(0.9, 0.1),
        ...               measure="the more it is looked at")
        >>> print(draw_answer(Example(source="好吃", output="good", source_tokens=tokens,
        ...                           output_tokens=(), answer=said)))
        好吃
        <BLANKLINE>
        good  ██████████████████████▌        0.750
        bad   ███████▌                       0.250
        <BLANKLINE>
        the more it is looked at: 好 0.9, 吃 0.1
    """
    said = example.answer
    assert said is not None
    is_source = said.side == "source" or (said.side is None and bool(example.source_tokens))
    tokens = example.source_tokens if is_source else example.output_tokens
    texts = [example.source or example.output]
    if said.side is not None:
        texts = [example.output, example.source] if is_source else [example.source, example.output]
        texts[1] = _bracketed(texts[1], tokens, said.tags)
    blocks = [" ".join(text.split()) for text in texts if text]
    if example.image is not None:
        blocks = [draw_image(example.image, said.values or None)]
    if said.labels:
        kept = said.labels[:_MOST_LABELS]
        margin = max(width_of(label) for label, _ in kept)
        blocks.append(
            "\n".join(
                f"{label}{' ' * (margin - width_of(label))}  {_bar(share)}  {share:.3f}"
                for label, share in kept
            )
        )
    if said.tags and said.side is None:
        pairs = zip(tokens, said.tags, strict=True)
        blocks.append(
            " ".join(
                token.text if tag in ("", "O") else f"{token.text}/{tag}" for token, tag in pairs
            )
        )
    if said.values and example.image is not None:
        blocks.append(f"beside the picture, the brighter a part: {said.measure}")
    elif said.values:
        order = sorted(range(len(tokens)), key=lambda at: -said.values[at])[:_MOST_TOKENS]
        most = ", ".join(f"{shown(tokens[at].text)} {said.values[at]:.3g}" for at in order)
        blocks.append(f"{said.measure}: {most}")
    return "\n\n".join(blocks)


@dataclass(frozen=True, slots=True)
class Drawing:
    """An attention map for a terminal.

    Attributes:
        text: The drawing, without the column and the row of the sentence's end.
        left_on_end: What each output token left on the end of the source; None where the model
            reads none.
        names: The output tokens.
    """

    text: str
    left_on_end: tuple[float, ...] | None
    names: tuple[str, ...]

    def __str__(self) -> str:
        if not self.left_on_end:
            return self.text
        mean = sum(self.left_on_end) / len(self.left_on_end)
        most, name = max(zip(self.left_on_end, self.names, strict=True))
        return (
            f"{self.text}\n(left on the end of the source: {mean:.2f} on average, "
            f"at most {most:.2f}, by {name})"
        )


def draw_attention(example: Example, *, layer: int | None = None, width: int = 80) -> Drawing:
    """The attention from output to source as text, over heads averaged.

    Args:
        example: What was looked at.
        layer: Which layer; None averages over all.
        width: Columns of the terminal.

    Raises:
        SettingError: The model has no such layer.

    Example:
        >>> from regard.viewer import HeadMap
        >>> seen = HeadMap(kind="cross", layer=0, head=0, rows=[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
        >>> words = [Token(text="bin", start=0, end=3), Token(text="da", start=4, end=6)]
        >>> written = [Token(text="am", start=0, end=2), Token(text="here", start=3, end=7)]
        >>> written.append(Token(text="</s>", start=7, end=7))
        >>> sides = {"source_tokens": tuple(words), "output_tokens": tuple(written)}
        >>> print(draw_attention(Example(source="bin da", output="am here", maps=(seen,), **sides)))
              bin     da
          am  ██ .90     .10
        here  ░░ .20  ▓▓ .80
    """
    found = [m.rows for m in example.maps if m.kind == "cross" and layer in (None, m.layer)]
    if not found:
        raise SettingError("layer must be one with attention to the source; the model has none.")
    rows = [
        [sum(weights) / len(found) for weights in zip(*row, strict=True)]
        for row in zip(*found, strict=True)
    ][:-1]
    names = [token.text for token in example.output_tokens[:-1]]
    heads = [token.text for token in example.source_tokens]
    has_end = any(token.start == token.end for token in example.source_tokens[-1:])
    if has_end:
        heads.pop()
    return Drawing(
        text=draw_text([row[: len(heads)] for row in rows], heads, names, width=width),
        left_on_end=tuple(row[-1] for row in rows) if has_end else None,
        names=tuple(names),
    )


def _is_reverse(example: Example, before: Example) -> bool:
    """Whether it is of the same two texts, of which now the other looks."""
    if example.answer is None or example.answer.side is None:
        return False
    return (example.source, example.output) == (before.output, before.source)


def _blocks(example: Example, layer: int | None) -> list[str]:
    if example.answer is not None:
        return [draw_answer(example)]
    texts = [in_one_line(text, _LONGEST) for text in (example.source, example.output) if text]
    blocks = [" → ".join(texts)]
    if any(found.kind == "cross" for found in example.maps):
        blocks.append(str(draw_attention(example, layer=layer)))
    elif example.summaries:
        blocks.append(draw_layers(example))
    return blocks


def _bracketed(text: str, tokens: Sequence[Token], tags: Sequence[str]) -> str:
    """The text with each run of tokens that have a tag in brackets."""
    found, end = [], 0
    tagged = zip(tokens, tags, strict=True) if tags else ()
    for tag, run in groupby(tagged, key=lambda pair: pair[1]):
        if tag:
            first, *_, last = [token for token, _ in run] * 2
            found += [text[end : first.start], "[", text[first.start : last.end], "]"]
            end = last.end
    return "".join([*found, text[end:]])


def _bar(share: float) -> str:
    halves = round(2 * _BAR * share)
    return f"{'█' * (halves // 2)}{'▌' * (halves % 2)}".ljust(_BAR)
