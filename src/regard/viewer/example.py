"""One text, the output and the attention of a model: the parts of a document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from regard.checks import check_count, choose
from regard.errors import DataError
from regard.viewer.circuits import HeadCircuit, StrongNeuron
from regard.viewer.image import Image
from regard.viewer.layer_summary import (
    AXES,
    HeadVectors,
    Kind,
    LayerSummary,
    Lens,
    Side,
    check_finite,
    check_head,
)
from regard.viewer.search import SearchTree
from regard.viewer.stream import StreamSums

Head = int | Literal["mean"]
Layer = int | Literal["mean"]
Link = tuple[int, int]  # source token, output token
Sides = Literal["texts", "queries and keys"]
Share = tuple[str, float]  # label, probability


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """One token and where it stands in its text.

    Attributes:
        text: Text that people see; a space marker such as ``▁`` may be left in.
        start: First character, counted in Unicode code points of the source or output text.
        end: One past the last character; equal to ``start`` for a token that is no text, such as
            the end of the sentence.
    """

    text: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldLinks:
    """Links that people set, as pairs (source token, output token).

    Attributes:
        sure: Links that every annotator sets.
        possible: Links that some would set; those in ``sure`` need not be repeated.

    Example:
        >>> import torch
        >>> from regard.viewer import show
        >>> gold = GoldLinks(sure=((0, 0),), possible=((2, 1),))
        >>> page = show(torch.eye(2, 3), ["ich", "nicht", "da"], output=["I", "not"], gold=gold)
        >>> page.document.examples[0].summaries[0].measures["alignment_error"]
        (0.3333,)
    """

    sure: tuple[Link, ...] = ()
    possible: tuple[Link, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """Key of an example's map.

    Attributes:
        kind: ``cross`` (output looks at source), ``encoder`` or ``decoder`` (each at itself).
        layer: Counted from 0, the page shows it counted from 1; or ``"mean"`` over layers.
        head: Counted from 0, or ``"mean"`` over the heads of the layer.

    Raises:
        SettingError: The kind is unknown, or a number is below 0.
    """

    kind: Kind = "cross"
    layer: Layer = "mean"
    head: Head = "mean"

    def __post_init__(self) -> None:
        choose("kind", self.kind, AXES)
        _check_number("layer", self.layer)
        _check_number("head", self.head)


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadMap:
    """The weights of one head, as numbers: one row per token that looks.

    For short texts; ``LayerSummary`` holds those of long ones in fewer bytes.

    Row ``t`` of a ``cross`` or ``decoder`` map belongs to the query that predicts output token
    ``t``. The keys of a ``decoder`` map are the decoder's inputs: column 0 is the start sign and
    column ``j`` is output token ``j - 1``; unless the example says ``started=False``.

    Attributes:
        kind: ``cross`` (T × S), ``encoder`` (S × S) or ``decoder`` (T × T).
        layer: Counted from 0.
        head: Counted from 0, or ``"mean"``.
        rows: Weights, any nested sequence; kept as tuples with four significant digits.

    Example:
        >>> HeadMap(kind="cross", layer=0, head=0, rows=[[1 / 3, 2 / 3]]).rows
        ((0.3333, 0.6667),)
    """

    kind: Kind
    layer: int
    head: Head
    rows: Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        check_head(self, "layer")
        _check_number("head", self.head)
        rows = tuple(tuple(_four_digits(weight) for weight in row) for row in self.rows)
        object.__setattr__(self, "rows", rows)


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """Change of the output under edited attention.

    Attributes:
        edit: The edit in words: "layer 2, head 3 muted".
        output: The output after it.
        score: Its score, or None.
    """

    edit: str
    output: str
    score: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Importance:
    """Importance of each token, by one measure.

    Attributes:
        method: Its name, such as "leave one out" or "gradient × input".
        values: One per token of the source; of the output where there is no source.
        output: The output token it was measured for, or None for all of the output.
        correlation: Rank correlation with the attention beside it, or None.
        target: The explained token or class, where it is none of the output's.
        against: The token or class that it is held against; empty for none.
        position: The token in whose position, or after which, the target is predicted.
        start: The value of the start sign, which is no token.
        total: Sum of the values, with the start's, if the method is complete.
        change: Change of the explained number from the baseline, the sum if all is exact.
    """

    method: str
    values: tuple[float, ...]
    output: int | None = None
    correlation: float | None = None
    target: str = ""
    against: str = ""
    position: int | None = None
    start: float | None = None
    total: float | None = None
    change: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """Prediction for a text, where none was generated.

    Attributes:
        labels: Possible labels, each with its probability, the likeliest first.
        tags: One for each token of the source, or of the output where there is no source; "" is
            none.
        values: A number for each of these tokens, such as how unexpected it was.
        measure: Name of the measure of ``values``.
        side: Whose tokens these are, where both texts have some; None is as ``tags`` says.

    Example:
        >>> from regard.viewer import draw_examples
        >>> tokens = (Token(text="Hans", start=0, end=4), Token(text="ran", start=5, end=8))
        >>> answer = Prediction(tags=("PER", "O"), values=(0.2, 0.1), measure="surprise")
        >>> sides = {"source": "Hans ran", "output": "", "output_tokens": ()}
        >>> print(draw_examples([Example(source_tokens=tokens, answer=answer, **sides)]))
        Hans ran
        <BLANKLINE>
        Hans/PER ran
        <BLANKLINE>
        surprise: Hans 0.2, ran 0.1
    """

    labels: tuple[Share, ...] = ()
    tags: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    measure: str = ""
    side: Side | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One text, with the output and the attention of a model.

    A model of one text has it as ``source`` if it is an encoder and as ``output`` if it is a
    decoder (a language model); the other side is empty.

    Attributes:
        source: The text read.
        output: The text written.
        source_tokens: The columns of a ``cross`` map.
        output_tokens: Its rows.
        maps: The heads that were kept as numbers. The page adds the means of heads and of layers.
        summaries: The layers that were kept as summaries; a layer is kept in one way.
        started: Whether a decoder's keys are a start sign and all output tokens but the last, as
            in a translation; False where they are the output tokens themselves.
        sides: Names of rows and columns: ``texts``, or ``queries and keys`` of weights that no
            model of texts made.
        head_names: Names of the heads of each layer by their numbers, where heads differ by more
            than their weights, such as in their masks; the page shows no mean of these.
        label: Name that tells this example from others of the same text, such as the model's.
        score: The search's score of the output, or None.
        gold: Links people set, or None.
        search: How the output was found, step by step, or None.
        changes: Effects of edits of the attention on the output.
        importances: How much each token mattered, by several measures.
        surprise: −log p of each output token, in nats; None where the model predicted none, as of
            the first. Empty where it is not known.
        lens: Predictions of each layer, or None.
        answer: Prediction for the text, where no output was generated.
        image: The picture whose parts the source tokens are, or None.
        segments: Of two texts that are read as one, which each token is of, 0 or 1: one per token
            of the source, or of the output where there is no source.
        vectors: Queries and keys of some heads.
        stream: Logits and scores of some heads, by writers of the residual stream, or None.
        circuits: Tokens that some heads like to look at, and logits that they then change.
        feed_forward: The strongest neurons of feed-forward parts, in words, the strongest first.

    Raises:
        DataError: A token lies outside its text, a map, summary or list is not of as many tokens as
            there are, a head has no name while others do, or a number is not finite.
        SettingError: ``sides`` is unknown.
    """

    source: str
    output: str
    source_tokens: tuple[Token, ...]
    output_tokens: tuple[Token, ...]
    maps: tuple[HeadMap, ...] = ()
    summaries: tuple[LayerSummary, ...] = ()
    started: bool = True
    sides: Sides = "texts"
    head_names: tuple[str, ...] = ()
    label: str | None = None
    score: float | None = None
    gold: GoldLinks | None = None
    search: SearchTree | None = None
    changes: tuple[Change, ...] = ()
    importances: tuple[Importance, ...] = ()
    surprise: tuple[float | None, ...] = ()
    lens: Lens | None = None
    answer: Prediction | None = None
    image: Image | None = None
    segments: tuple[int, ...] = ()
    vectors: tuple[HeadVectors, ...] = ()
    stream: StreamSums | None = None
    circuits: tuple[HeadCircuit, ...] = ()
    feed_forward: tuple[StrongNeuron, ...] = ()

    def __post_init__(self) -> None:
        _check_tokens("source", self.source, self.source_tokens)
        _check_tokens("output", self.output, self.output_tokens)
        scores = (self.score, *(change.score for change in self.changes))
        check_finite("score must be finite or None", scores)
        sizes = {"source": len(self.source_tokens), "output": len(self.output_tokens)}
        for head_map in self.maps:
            _check_shape(head_map, *(sizes[side] for side in AXES[head_map.kind]))
        packed: tuple[LayerSummary | HeadVectors, ...] = (*self.summaries, *self.vectors)
        for heads in packed:
            heads.check(*(sizes[side] for side in AXES[heads.kind]))
        _check_segments(self.segments, sizes["source"] or sizes["output"])
        if self.search is not None and len(self.search.steps) not in (0, sizes["output"]):
            raise DataError(
                f"search must have a step for each of {sizes['output']} output tokens; got "
                f"{len(self.search.steps)}."
            )
        choose("sides", self.sides, {name: name for name in get_args(Sides)})
        _check_names(self.head_names, self.maps, self.summaries)
        for importance in self.importances:
            _check_importance(importance, sizes)
        _check_predictions(self, sizes)
        if self.image is not None:
            self.image.check(sizes["source"])
        if self.answer is not None:
            _check_answer(self.answer, sizes)
        if self.gold is not None:
            _check_links(self.gold, sizes)


def _four_digits(weight: float) -> float:
    if not -1e-6 <= weight <= 1.01:  # room for rounding in half precision; false for NaN
        raise DataError(f"weights must be between 0 and 1; got {weight}.")
    return float(f"{min(max(weight, 0.0), 1.0):.4g}")


def _check_number(name: str, value: int | Literal["mean"]) -> None:
    if value != "mean":
        check_count(name, value, 0)


def _check_tokens(side: str, text: str, tokens: Sequence[Token]) -> None:
    for token in tokens:
        if not 0 <= token.start <= token.end <= len(text):
            raise DataError(
                f"{side}_tokens must lie within the {len(text)} characters of {side}; got "
                f"{token.text!r} at {token.start}:{token.end}."
            )


def _check_segments(segments: Sequence[int], wanted: int) -> None:
    if segments and (len(segments) != wanted or set(segments) - {0, 1}):
        raise DataError(
            f"segments must be 0 or 1 for each of {wanted} tokens; got {list(segments[:8])} of "
            f"{len(segments)}."
        )


def _check_names(
    names: Sequence[str], maps: Sequence[HeadMap], summaries: Sequence[LayerSummary]
) -> None:
    heads = {one.head for one in maps if one.head != "mean"}
    heads |= {head for one in summaries for head in one.heads}
    last = max((int(head) for head in heads), default=-1)
    if names and last >= len(names):
        raise DataError(f"head_names must name each of {last + 1} heads; got {len(names)}.")


def _check_links(gold: GoldLinks, sizes: Mapping[str, int]) -> None:
    for link in (*gold.sure, *gold.possible):
        if not (0 <= link[0] < sizes["source"] and 0 <= link[1] < sizes["output"]):
            raise DataError(
                f"gold links must be pairs (source token, output token) of "
                f"{sizes['source']} and {sizes['output']} tokens; got {link}."
            )


def _check_shape(found: HeadMap, height: int, width: int) -> None:
    got = sorted({len(row) for row in found.rows})
    if len(found.rows) != height or got not in ([width], []):
        raise DataError(
            f"rows of a {found.kind} map must be {height} × {width} weights; got "
            f"{len(found.rows)} × {'/'.join(map(str, got)) or 0} in layer {found.layer}, "
            f"head {found.head}."
        )


def _check_importance(importance: Importance, sizes: Mapping[str, int]) -> None:
    wanted = sizes["source"] or sizes["output"]
    if len(importance.values) != wanted:
        raise DataError(
            f"importances must have a value for each of {wanted} tokens; got "
            f"{len(importance.values)} of {importance.method!r}."
        )
    more = (importance.correlation, importance.start, importance.total, importance.change)
    values = (*importance.values, *more)
    check_finite("importances must be finite", values, f" of {importance.method!r}")


def _check_predictions(example: Example, sizes: Mapping[str, int]) -> None:
    """Check the predictions token by token."""
    surprise, wanted = example.surprise, sizes["output"]
    if surprise and len(surprise) != wanted:
        raise DataError(
            f"surprise must have a value for each of {wanted} output tokens; got {len(surprise)}."
        )
    check_finite("surprise must be finite", surprise)
    if example.lens is not None:
        example.lens.check(wanted or sizes["source"])
    if example.stream is not None:
        example.stream.check(sizes)


def _check_answer(answer: Prediction, sizes: Mapping[str, int]) -> None:
    if answer.side is not None:
        choose("answer.side", answer.side, sizes)
    wanted = sizes[answer.side] if answer.side else sizes["source"] or sizes["output"]
    for name, given in (("tags", answer.tags), ("values", answer.values)):
        if given and len(given) != wanted:
            raise DataError(
                f"answer.{name} must be one for each of {wanted} tokens; got {len(given)}."
            )
    shares = (share for _, share in answer.labels)
    check_finite("answer must have finite numbers", (*answer.values, *shares))
