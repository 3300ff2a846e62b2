"""What a model said of a text, as lines for a terminal."""

from collections.abc import Sequence
from itertools import groupby

from regard.viewer.example import Example, Token
from regard.viewer.image import draw_image
from regard.viewer.terminal import shown, width_of

# Labels, and tokens of the largest values, that are listed.
_MOST_LABELS, _MOST_TOKENS = 6, 8
_BAR = 30


def draw_answer(example: Example) -> str:
    """The text, its labels with bars, its words with tags, its tokens with the largest values.

    Of two texts the one that is not spoken of, such as the question, comes first, and in the other
    what is tagged, such as its answer, stands in brackets. A picture is drawn, beside it the values
    of its parts.

    Raises:
        AssertionError: Nothing was said.

    Example:
        >>> from regard.viewer import Answer, Token
        >>> tokens = (Token(text="好", start=0, end=1), Token(text="吃", start=1, end=2))
        >>> said = Answer(labels=(("good", 0.75), ("bad", 0.25)), values=(0.9, 0.1),
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
