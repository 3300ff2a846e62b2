"""Drawings of examples for a terminal: predictions, attention maps, tables of layers."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from regard.errors import SettingError, ShapeError
from regard.viewer.example import Example, Prediction, Token, View
from regard.viewer.image import SHADES, draw_image
from regard.viewer.layer_summary import AXES, LayerSummary
from regard.viewer.texts import in_one_line

_MOST_LABELS, _MOST_TOKENS, _LONGEST = 6, 8, 120  # labels, tokens of values, characters of a text
_BAR = 30
_CELL = 6  # of a map: two of shade, a space, three of figure
_GAP = 2
_WIDTH = 80  # columns of a terminal
_HEADS = ("attention", "heads", "entropy", "first", "distance", "looked at most")
_MOST_NAMED, _LONGEST_NAME = 4, 12


def draw_examples(examples: Iterable[Example], opening: View | None = None) -> str:
    """Draw each example as far as a terminal can show it, one below the other.

    Of two texts that look at each other the first example is drawn alone: the others are for a
    page.

    Args:
        examples: The examples.
        opening: The layer of attention to the source that is drawn; None draws the mean of all.

    Raises:
        SettingError: ``opening`` names a layer that the model does not have.

    Example:
        >>> from regard.viewer import Prediction
        >>> answer = Prediction(labels=(("good", 0.75), ("bad", 0.25)))
        >>> nothing = {"output": "", "source_tokens": (), "output_tokens": ()}
        >>> print(draw_examples([Example(source="好吃", answer=answer, **nothing)]))
        好吃
        <BLANKLINE>
        good  ██████████████████████▌         0.750
        bad   ███████▌                        0.250
    """
    layer = opening.layer if opening is not None and opening.kind == "cross" else "mean"
    blocks: list[str] = []
    before: Example | None = None
    for example in examples:
        if before is None or not _shows_pair_again(example, before):
            blocks += _blocks(example, None if layer == "mean" else layer)
            before = example
    return "\n\n".join(blocks)


def draw_answer(example: Example) -> str:
    """Draw a text, its labels with bars, its tags (in brackets, of two), its top tokens."""
    answer = example.answer
    assert answer is not None
    is_source = answer.side == "source" or (answer.side is None and bool(example.source_tokens))
    tokens = example.source_tokens if is_source else example.output_tokens
    texts = [example.source or example.output]
    if answer.side is not None:
        texts = [example.output, example.source] if is_source else [example.source, example.output]
        texts[1] = _bracketed(texts[1], tokens, answer.tags)
    blocks = [" ".join(text.split()) for text in texts if text]
    if example.image is not None:
        blocks = [draw_image(example.image, answer.values or None)]
    if answer.labels:
        blocks.append(_draw_labels(answer))
    if answer.tags and answer.side is None:
        pairs = zip(tokens, answer.tags, strict=True)
        blocks.append(
            " ".join(
                token.text if tag in ("", "O") else f"{token.text}/{tag}" for token, tag in pairs
            )
        )
    if answer.values and example.image is not None:
        blocks.append(f"beside the picture, the brighter a part: {answer.measure}")
    elif answer.values:
        order = sorted(range(len(tokens)), key=lambda n: -answer.values[n])[:_MOST_TOKENS]
        largest = ", ".join(f"{_printable(tokens[n].text)} {answer.values[n]:.3g}" for n in order)
        blocks.append(f"{answer.measure}: {largest}")
    return "\n\n".join(blocks)


def _draw_labels(answer: Prediction) -> str:
    labels = answer.labels[:_MOST_LABELS]
    margin = max(width_of(label) for label, _ in labels)
    lines = []
    for label, probability in labels:
        halves = round(2 * _BAR * probability)
        bar = f"{'█' * (halves // 2)}{'▌' * (halves % 2)}".ljust(_BAR)
        lines.append(f"{label}{' ' * (margin - width_of(label))}  {bar}  {probability:.3f}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class TerminalMap:
    """An attention map for a terminal."""

    text: str  # without the column and the row of the sentence's end
    left_on_end: tuple[float, ...] | None  # weight of each output token on the end, if it is read
    names: tuple[str, ...]  # of the output tokens

    def __str__(self) -> str:
        if not self.left_on_end:
            return self.text
        mean = sum(self.left_on_end) / len(self.left_on_end)
        most, name = max(zip(self.left_on_end, self.names, strict=True))
        return (
            f"{self.text}\n(left on the end of the source: {mean:.2f} on average, "
            f"at most {most:.2f}, by {name})"
        )


def draw_attention(example: Example, *, layer: int | None = None, width: int = 80) -> TerminalMap:
    """Draw the attention from output to source, averaged over heads; without a layer over all.

    Raises:
        SettingError: The model has no such layer.

    Example:
        >>> from regard.viewer import HeadMap
        >>> seen = HeadMap(kind="cross", layer=0, head=0, rows=[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
        >>> words = (Token(text="bin", start=0, end=3), Token(text="da", start=4, end=6))
        >>> written = (Token(text="am", start=0, end=2), Token(text="here", start=3, end=7))
        >>> written += (Token(text="</s>", start=7, end=7),)
        >>> print(draw_attention(Example(source="bin da", output="am here", maps=(seen,),
        ...                              source_tokens=words, output_tokens=written)))
              bin     da
          am  ██ .90     .10
        here  ░░ .20  ▓▓ .80
    """
    maps = [m.rows for m in example.maps if m.kind == "cross" and layer in (None, m.layer)]
    if not maps:
        raise SettingError("layer must be one with attention to the source; the model has none.")
    rows = [
        [sum(weights) / len(maps) for weights in zip(*row, strict=True)]
        for row in zip(*maps, strict=True)
    ][:-1]
    names = [token.text for token in example.output_tokens[:-1]]
    heads = [token.text for token in example.source_tokens]
    has_end = any(token.start == token.end for token in example.source_tokens[-1:])
    if has_end:
        heads.pop()
    return TerminalMap(
        text=draw_text([row[: len(heads)] for row in rows], heads, names, width=width),
        left_on_end=tuple(row[-1] for row in rows) if has_end else None,
        names=tuple(names),
    )


def _shows_pair_again(example: Example, before: Example) -> bool:
    """Whether an example shows the other direction of the one before it, or both texts in a row."""
    if example.segments:
        return example.source in (
            f"{before.output}\n{before.source}",
            f"{before.source}\n{before.output}",
        )
    if example.answer is None or example.answer.side is None:
        return False
    return (example.source, example.output) == (before.output, before.source)


def _blocks(example: Example, layer: int | None) -> list[str]:
    if example.answer is not None:
        return [draw_answer(example)]
    texts = [in_one_line(text, _LONGEST) for text in (example.source, example.output) if text]
    blocks = [" → ".join(texts)]
    if any(head_map.kind == "cross" for head_map in example.maps):
        blocks.append(str(draw_attention(example, layer=layer)))
    elif example.summaries:
        blocks.append(draw_layers(example))
    return [*blocks, *_contrasts(example)]


def _contrasts(example: Example) -> list[str]:
    """List the tokens that speak most for a target or against it, by each measure with signs."""
    tokens = example.source_tokens or example.output_tokens
    lines = []
    for measure in example.importances:
        if measure.against and min(measure.values) < 0:
            order = sorted(range(len(measure.values)), key=lambda n: -abs(measure.values[n]))
            values = (f"{_printable(tokens[n].text)} {measure.values[n]:+.2g}" for n in order)
            largest = ", ".join(list(values)[:_MOST_TOKENS])
            lines.append(
                f"{measure.target} (+) or {measure.against} (−), {measure.method}: {largest}"
            )
    return ["\n".join(lines)] if lines else []


def _bracketed(text: str, tokens: Sequence[Token], tags: Sequence[str]) -> str:
    """Put each run of tagged tokens in brackets."""
    parts, end = [], 0
    tagged = zip(tokens, tags, strict=True) if tags else ()
    for tag, run in groupby(tagged, key=lambda pair: pair[1]):
        if tag:
            first, *_, last = [token for token, _ in run] * 2
            parts += [text[end : first.start], "[", text[first.start : last.end], "]"]
            end = last.end
    return "".join([*parts, text[end:]])


def draw_layers(example: Example) -> str:
    """Draw one line a layer: means over heads in nats and tokens; who receives most."""
    tokens = {"source": example.source_tokens, "output": example.output_tokens}
    rows = [_HEADS]
    for layer in example.summaries:
        names = [token.text for token in tokens[AXES[layer.kind][1]]]
        if layer.kind == "decoder" and example.started:
            names = ["⟨start⟩", *names[:-1]]
        rows.append((*_numbers(layer), ", ".join(_received(layer, names))))
    widths = [max(width_of(row[column]) for row in rows) for column in range(len(_HEADS) - 1)]
    lines = []
    for row in rows:
        cells = [cell.rjust(size) for cell, size in zip(row[1:-1], widths[1:], strict=True)]
        start = (" " * _GAP).join([row[0].ljust(widths[0]), *cells])
        lines.append(f"{start}{' ' * _GAP}{_fitting(row[-1], _WIDTH - width_of(start) - _GAP)}")
    return "\n".join(lines)


def _numbers(layer: LayerSummary) -> tuple[str, str, str, str, str]:
    entropies = [one for one in layer.measures.get("entropy", ()) if one is not None]
    spread = f" ({min(entropies):.2f}-{max(entropies):.2f})" if entropies else ""
    return (
        f"{layer.kind} {layer.layer}",
        str(len(layer.heads)),
        f"{_mean(entropies, 2)}{spread}",
        _mean(layer.measures.get("first", ()), 2),
        _mean(layer.measures.get("distance", ()), 1),
    )


def _mean(values: Iterable[float | None], digits: int) -> str:
    numbers = [value for value in values if value is not None]
    return f"{sum(numbers) / len(numbers):.{digits}f}" if numbers else "·"


def _received(layer: LayerSummary, names: Sequence[str]) -> list[str]:
    """The tokens that receive most; the first of several where one number stands for them."""
    if layer.received is None:
        return []
    width = layer.received.places
    sums = layer.received.values.values().sum(axis=0)
    total = sums.sum()
    if not total > 0:
        return []
    best = np.argsort(-sums, kind="stable")[:_MOST_NAMED]
    more = "…" if width > 1 else ""
    return [
        f"{_short(names[int(index) * width])}{more} {_percentage(sums[index] / total)}"
        for index in best
        if sums[index] > 0
    ]


def _percentage(fraction: float) -> str:
    """Format a percentage with a digit that is not zero."""
    digits = 0 if fraction >= 0.0995 else 1 if fraction >= 0.00995 else 2
    return f"{fraction:.{digits}%}"


def _short(name: str) -> str:
    name = _printable(name.replace("Ġ", " "))  # the space of byte-level tokenizers
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _fitting(names: str, room: int) -> str:
    """Return as many of the names as there is room for, at least one."""
    while width_of(names) > room and ", " in names:
        names = names.rpartition(", ")[0]
    return names


def draw_text(
    weights: Sequence[Sequence[float]],
    source_tokens: Sequence[str],
    output_tokens: Sequence[str],
    *,
    width: int = 80,
) -> str:
    """Draw a map as text: source tokens across, output tokens down, a shade and a figure a cell.

    Weights below 0.005 are left as a dot. A Chinese, Japanese or Korean character takes two
    columns of a terminal and is counted so. A source that does not fit is continued in a
    second block below the first.

    Args:
        weights: One row per output token, one weight per source token.
        source_tokens: Heads of the columns.
        output_tokens: Heads of the rows.
        width: Columns of the terminal.

    Raises:
        ShapeError: There are not as many weights as pairs of tokens.

    Example:
        >>> print(draw_text([[0.97, 0.03], [0.004, 0.996]], ["我", "爱"], ["I", "love"]))
              我      爱
           I  ██ .97     .03
        love       ·  ██ 1.0
    """
    got = [len(row) for row in weights]
    if got != [len(source_tokens)] * len(output_tokens):
        raise ShapeError(
            f"weights must have {len(output_tokens)} rows (output tokens) of "
            f"{len(source_tokens)} (source tokens); got rows of {got}."
        )
    names = [_printable(token) for token in output_tokens]
    heads = [_printable(token) for token in source_tokens]
    margin = max(map(width_of, names), default=0)
    blocks = []
    for first, last in _column_blocks(
        [max(_CELL, width_of(head)) + _GAP for head in heads], width - margin
    ):
        lines = [_map_line("", heads[first:last], heads[first:last], margin)]
        for name, row in zip(names, weights, strict=True):
            cells = [_cell(weight) for weight in row[first:last]]
            lines.append(_map_line(name, cells, heads[first:last], margin))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _column_blocks(columns: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """Ranges of columns that fit; at least one column each."""
    first, used = 0, 0
    for index, column in enumerate(columns):
        if index > first and used + column > room:
            yield first, index
            first, used = index, 0
        used += column
    yield first, len(columns)


def _map_line(name: str, cells: Sequence[str], heads: Sequence[str], margin: int) -> str:
    line = " " * (margin - width_of(name)) + name
    for cell, head in zip(cells, heads, strict=True):
        line += " " * _GAP + cell + " " * (max(_CELL, width_of(head)) - width_of(cell))
    return line.rstrip()


def _cell(weight: float) -> str:
    if weight < 0.005:
        return " " * (_CELL - 1) + "·"
    figure = f"{weight:.2f}"[1:] if weight < 0.995 else "1.0"
    shade = SHADES[min(len(SHADES) - 1, int(weight * (len(SHADES) - 1) + 0.5))]
    return f"{shade * 2} {figure}"


def _printable(token: str) -> str:
    """Put a token on one line, with its spaces and controls visible."""
    text = token.replace("▁", " ").strip() or "␣"
    return "".join(c if c.isprintable() else "·" for c in text)


def width_of(text: str) -> int:
    """Columns of a terminal that a text takes."""
    return sum(
        2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
        if unicodedata.category(character) not in ("Mn", "Me", "Cf")
    )
