"""Attention weights of one output by several runs of a recipe: their mean and spread."""

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import mean, stdev

from regard.config import JsonValue
from regard.errors import ShapeError
from regard.viewer.drawing import width_of
from regard.viewer.plain_page import plain_page
from regard.viewer.texts import in_one_line


@dataclass(frozen=True)
class WeightSpread:
    """Weights of the same output over the same source, by several runs.

    Attributes:
        source: The source text.
        output: The output, whose weights each run was asked for.
        source_tokens: Heads of the columns.
        output_tokens: Heads of the rows.
        weights: One matrix a run, a row for each token of the output.
        answers: Output that each run writes by itself.

    Raises:
        ShapeError: There are fewer than two runs, or not as many weights as pairs of tokens.

    Example:
        >>> runs = ([[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.6, 0.4]])
        >>> spread = WeightSpread("我走", "I go", ("我", "走"), ("I", "go"), runs, ("I go", "I go"))
        >>> [[round(weight, 2) for weight in row] for row in spread.mean]
        [[0.8, 0.2], [0.5, 0.5]]
        >>> spread.votes[0]  # how many runs look most at which token
        [('我', 2)]
    """

    source: str
    output: str
    source_tokens: tuple[str, ...]
    output_tokens: tuple[str, ...]
    weights: tuple[Sequence[Sequence[float]], ...]
    answers: tuple[str, ...]

    def __post_init__(self) -> None:
        sizes = {tuple(len(row) for row in rows) for rows in self.weights}
        expected = (len(self.source_tokens),) * len(self.output_tokens)
        if len(self.weights) < 2 or sizes != {expected}:
            raise ShapeError(
                f"weights must be of two runs or more, with {len(self.output_tokens)} rows of "
                f"{len(self.source_tokens)} each; got {len(self.weights)} runs with rows of "
                f"{sorted(sizes)}."
            )

    @cached_property
    def mean(self) -> list[list[float]]:
        """The mean of each weight over the runs."""
        return [[mean(cell) for cell in row] for row in self._cells]

    @cached_property
    def deviation(self) -> list[list[float]]:
        """The standard deviation of each weight from run to run."""
        return [[stdev(cell) for cell in row] for row in self._cells]

    @cached_property
    def votes(self) -> list[list[tuple[str, int]]]:
        """Source tokens that runs look at most, for each output token, with the number of runs."""
        return [
            [(self.source_tokens[column], count) for column, count in counts.most_common()]
            for counts in self._counts
        ]

    def is_fact(self, row: int, column: int) -> bool:
        """Whether every run gives this source token the most weight of the row."""
        return self._counts[row][column] == len(self.weights)

    def as_data(self) -> dict[str, JsonValue]:
        """Return everything as JSON takes it."""
        return {
            "source": self.source,
            "output": self.output,
            "source_tokens": [*self.source_tokens],
            "output_tokens": [*self.output_tokens],
            "weights": [[[round(one, 4) for one in row] for row in run] for run in self.weights],
            "answers": [*self.answers],
        }

    @property
    def _cells(self) -> list[list[tuple[float, ...]]]:
        return [[*zip(*rows, strict=True)] for rows in zip(*self.weights, strict=True)]

    @cached_property
    def _counts(self) -> list[Counter[int]]:
        columns = range(len(self.source_tokens))
        return [
            Counter(max(columns, key=row.__getitem__) for row in rows)
            for rows in zip(*self.weights, strict=True)
        ]


def draw_spread(spread: WeightSpread) -> str:
    """Draw means with standard deviations as text; a star where all runs look most.

    Example:
        >>> runs = ([[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.6, 0.4]])
        >>> print(draw_spread(
        ...     WeightSpread("我走", "I go", ("我", "走"), ("I", "go"), runs, ("I go", "I go"))
        ... ))
        我走 → I go: mean and standard deviation of 2 runs
        <BLANKLINE>
                 我           走
         I  0.80 ±0.14*   0.20 ±0.14
        go  0.50 ±0.14    0.50 ±0.14
        <BLANKLINE>
         I  looks most at 我 in 2 of 2 runs
        go  looks most at 走 in 1 of 2 runs, at 我 in 1
    """
    rows, runs = range(len(spread.output_tokens)), len(spread.weights)
    margin = max(map(width_of, spread.output_tokens))
    columns = [max(width_of(head), 12) for head in spread.source_tokens]
    lines = [f"{_title(spread)}: mean and standard deviation of {runs} runs", ""]
    heads = [
        _left(" " * ((width - width_of(head)) // 2) + head, width)
        for head, width in zip(spread.source_tokens, columns, strict=True)
    ]
    lines.append((" " * margin + "  " + "  ".join(heads)).rstrip())
    for row in rows:
        cells = [
            _left(_cell(spread, row, column) + "*" * spread.is_fact(row, column), width)
            for column, width in enumerate(columns)
        ]
        lines.append(f"{_right(spread.output_tokens[row], margin)}  {'  '.join(cells)}".rstrip())
    lines.append("")
    lines += [f"{_right(spread.output_tokens[row], margin)}  {_votes(spread, row)}" for row in rows]
    return "\n".join(lines)


def spread_page(spreads: Sequence[WeightSpread]) -> str:
    """One HTML page of tables, which needs nothing else; a frame where all runs look most."""
    tables = "\n".join(map(_table, spreads))
    title = "Attention weights of several runs · 多次训练的注意力权重"
    return plain_page(title, f"{_INTRO}\n{tables}", style=_STYLE)


def _title(spread: WeightSpread) -> str:
    return f"{in_one_line(spread.source, 60)} → {in_one_line(spread.output, 60)}"


def _cell(spread: WeightSpread, row: int, column: int) -> str:
    return f"{spread.mean[row][column]:.2f} ±{spread.deviation[row][column]:.2f}"


def _right(text: str, width: int) -> str:
    return " " * (width - width_of(text)) + text


def _left(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))


def _votes(spread: WeightSpread, row: int) -> str:
    (first, most), *remaining = spread.votes[row]
    tail = "".join(f", at {token} in {count}" for token, count in remaining)
    return f"looks most at {first} in {most} of {len(spread.weights)} runs{tail}"


def _table(spread: WeightSpread) -> str:
    heads = "".join(f"<th scope=col>{html.escape(token)}</th>" for token in spread.source_tokens)
    rows = []
    for row, token in enumerate(spread.output_tokens):
        cells = "".join(_html_cell(spread, row, column) for column in range(len(spread.mean[row])))
        most = ", ".join(f"{html.escape(name)} {count}" for name, count in spread.votes[row])
        rows.append(f"<tr><th scope=row>{html.escape(token)}</th>{cells}<td>{most}</td></tr>")
    answers = "".join(
        f"<li>{html.escape(answer)}: {count}</li>"
        for answer, count in Counter(spread.answers).most_common()
    )
    return (
        f"<h2>{html.escape(_title(spread))}</h2>\n<div class=wide><table>\n<tr><td></td>{heads}"
        f"<th scope=col>most, in {len(spread.weights)} runs<br>{len(spread.weights)} 次中最大</th>"
        f"</tr>\n{''.join(rows)}\n</table></div>\n"
        f"<p>What the runs write by themselves · 各次训练自己写出的：</p><ul>{answers}</ul>"
    )


def _html_cell(spread: WeightSpread, row: int, column: int) -> str:
    weight, off = spread.mean[row][column], spread.deviation[row][column]
    fact = " class=fact" if spread.is_fact(row, column) else ""
    shade = f"--w:{100 * weight:.0f}%"
    return f'<td{fact} style="{shade}"><b>{weight:.2f}</b> <span>±{off:.2f}</span></td>'


_INTRO = """<p>Mean ± standard deviation of each weight over the runs, of the same output; heads \
and layers are averaged. In a frame: every run looks most at this token.</p>
<p lang="zh">各次训练对同一输出的权重：平均值 ± 标准差，各头各层取平均。\
带框的格子：每次训练都最看重这个词元。</p>"""
_STYLE = "td.fact { border: 2px solid CanvasText; }\ntd span { font-size: .8rem; }"
