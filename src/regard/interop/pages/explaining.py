"""Contributions of tokens, predictions by layer and loss by token, beside attention on a page."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.checks import choose
from regard.errors import DataError, SettingError
from regard.interop.attribution.attribute import (
    BY_ATTENTION,
    METHODS,
    Attribution,
    ExplainedText,
    Method,
    output_of,
)
from regard.interop.attribution.decomposition import module_and_inputs
from regard.interop.attribution.direct_path import DirectPath
from regard.interop.attribution.faithfulness import logits_of, rank_correlation
from regard.interop.pages.circuits import circuits_of_example, neurons_of_example
from regard.interop.pages.lens import Readout
from regard.interop.pages.neurons import vectors_of
from regard.interop.pages.sums import Choice, short, sums_of
from regard.tasks.drawing import CrossAttention
from regard.viewer import Example, Importance
from regard.viewer.example import Share
from regard.viewer.options import LookOptions
from regard.viewer.summaries import LONGEST_WITH_ROWS

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_NAMES = {
    "attention": "attention",
    "gradient_times_input": "gradient × input",
    "integrated_gradients": "integrated gradients",
    "leave_one_out": "leave one out",
    "rollout": "rollout",
    "attention_gradient": "attention × gradient",
}
_CHEAP = ("attention", "gradient_times_input", "rollout")
_LONGEST = 1024  # tokens of a text up to which cheap methods are computed without being asked for
_PRODUCTS = 2 * 10**11  # that the others may take of a text without being asked for
_MOST_OUTPUTS = 32
_STEPS = 32  # of integrated gradients
_TOKENS = 1024  # of changed inputs that are computed at once


def methods_named(names: str | None) -> list[str] | None:
    """The methods that a text such as ``rollout,leave-one-out``, ``all`` or ``none`` names."""
    if names is None or names == "none":
        return None if names is None else []
    methods = [name.strip().replace("-", "_") for name in names.split(",")]
    for name in methods:
        choose("--attribute", name, dict.fromkeys((*METHODS, "all", "none")))
    return list(METHODS) if "all" in methods else methods


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Inputs of a model for the text of an example, and the outputs that may be explained."""

    inputs: Mapping[str, Tensor]  # of one text, by name
    name: Callable[[int], str] = str  # of a token
    read_name: Callable[[int], str] | None = None  # of a token that is read, if another
    encode: Callable[[str], Sequence[int]] = lambda _: ()  # the ids of a word or an output
    text: str = ""  # the input at whose positions tokens are predicted; empty of others
    next_ids: Sequence[int] = ()  # tokens that stand in the text, from the first predicted
    ahead: int = 0  # 1 where a position of the example predicts the token after it
    start: int = 0  # positions of the input before the first token of the example
    positions: Sequence[int] = ()  # positions whose predictions are explained
    written: Sequence[int] | None = None  # all tokens of an output, each of which is explained
    labels: Sequence[str] = ()  # the classes of a classifier
    explained: str | None = None  # the input of the example's tokens; None is the main one
    part: CrossAttention | None = None  # the two texts, where they are parts of the input
    attends: bool = True  # whether one position's attention leads to the explained output
    choices: Callable[[ExplainedText, LookOptions], Sequence[Choice]] | None = None  # other outputs
    blanks: bool = False  # whether the example's output is predicted at ``positions``

    @torch.no_grad()
    def explain(self, model: nn.Module, example: Example, why: LookOptions) -> Example:
        """Add queries and keys, contributions, predictions by layer and losses to an example."""
        text = ExplainedText(
            model, self.inputs, name=self.explained, body=getattr(model, "base_model", None)
        )
        length = len(example.source_tokens or example.output_tokens)
        choices: list[Choice] = []
        try:
            if self.text:
                example = self._predicted(text, example)
            if why.contributes and (why.requests_contributions or length <= _LONGEST):
                choices = list(self._choices(text, why))
                made = self._importances(text, choices, length, why) if choices else ()
                example = replace(example, importances=made or example.importances)
        except SettingError:  # it has no logits
            if why.requests_contributions and why.contributes:
                raise
        is_short = length <= LONGEST_WITH_ROWS
        if self.part is None:
            is_wanted = bool(why.scores or why.circuits)
            if is_wanted or (is_short and why.contributes):
                example = self._in_parts(text, example, choices, why)
        if why.neurons is None and not is_short:
            return example
        try:
            vectors = vectors_of(text.seen, example, why.neurons, self.part)
        except SettingError:  # it has no attention, or not that of these heads
            if why.neurons is not None:
                raise
            return example
        return replace(example, vectors=vectors)

    def _in_parts(
        self, text: ExplainedText, example: Example, choices: Sequence[Choice], why: LookOptions
    ) -> Example:
        """The example with sums over parts, circuits of heads and neurons, where it has them."""
        try:
            path = DirectPath(*module_and_inputs(text.model, text.inputs))
        except SettingError:
            if why.scores or why.circuits:
                raise
            return example
        stream = sums_of(path.run, text, example, choices, why.scores, self.start)
        example = replace(example, stream=stream)
        if not (self.text or self.labels):  # only the task names its tokens
            return example
        answered = self.labels.__getitem__ if self.labels else self.name
        names = (self.read_name or self.name, self.name, answered)
        positions = [choice.position for choice in choices if choice.position is not None]
        example = circuits_of_example(
            path, example, why.circuits, positions[0] if positions else None, names
        )
        return neurons_of_example(path, example, names)

    def _predicted(self, text: ExplainedText, example: Example) -> Example:
        """The example with predictions by layer, and with the loss of each output token."""
        readout = Readout(text, self.text)
        lens = readout.lens(self.name, self.ahead, self.positions if self.blanks else None)
        surprise: list[float | None] = [*[None] * self.ahead, *readout.surprise(self.next_ids)]
        if len(surprise) == len(example.output_tokens):
            costs = (None if nats is None else short(nats, 5) for nats in surprise)
            example = replace(example, surprise=tuple(costs))
        return replace(example, lens=lens)

    def _choices(self, text: ExplainedText, why: LookOptions) -> Iterator[Choice]:
        """Outputs to explain."""
        if self.choices is not None:
            yield from self.choices(text, why)
        elif self.written is not None:
            yield from self._written_tokens(text, why.against)
        elif self.labels:
            target = class_of(self.labels, "target", why.target)
            against = class_of(self.labels, "--not", why.against)
            yield self._choice(text, target, against, None, None)
        else:
            yield from self._words(text, why)

    def _written_tokens(self, text: ExplainedText, against: str | None) -> Iterator[Choice]:
        tokens = list(enumerate(self.written or ()))[:_MOST_OUTPUTS]
        if against is None:
            for n, token in tokens:
                yield self._choice(text, token, None, n, n)
            return
        for (n, token), against_id in zip(tokens, self.encode(against), strict=False):
            if token != against_id:
                yield self._choice(text, token, against_id, n, n)
                return
        raise DataError(f"--not must differ from the output within it; got {against!r}.")

    def _words(self, text: ExplainedText, why: LookOptions) -> Iterator[Choice]:
        if not self.positions and (why.target or why.against):
            raise DataError("text must have a mask where --target is to stand; got none.")
        logits = logits_of(text.model, text.answer)[0]
        for n, position in enumerate(self.positions[:_MOST_OUTPUTS]):
            first = self._token("target", why.target, logits[position])
            second = self._token("--not", why.against, logits[position])
            if first is not None and first == second:
                raise DataError(
                    f"--not must differ from --target in its first token; got {why.against!r}, "
                    f"which begins with {self.name(first)!r} too."
                )
            yield self._choice(text, first, second, n if self.blanks else None, position)

    def _choice(
        self,
        text: ExplainedText,
        target: int | None,
        against: int | None,
        output: int | None,
        position: int | None,
    ) -> Choice:
        """The logit of a token or a class."""
        number, read = output_of(text.answer, text.model, target, against, position)
        assert read is not None
        name = self.labels.__getitem__ if self.labels else self.name
        against_name = "" if against is None else name(against)
        return Choice(number, name(read[1]), against_name, output, position)

    def _token(self, option: str, word: str | None, logits: Tensor) -> int | None:
        """The first token of a word, after a space or not: in fewer tokens, then likelier."""
        if word is None:
            return None
        forms = [self.encode(form) for form in {word, f" {word.lstrip()}"}]
        named = [[token for token in form if self.name(token).strip("▁Ġ ")] for form in forms]
        candidates = [form for form in named if form]
        if not candidates:
            raise DataError(f"{option} must have tokens that the model knows; got {word!r}.")
        return min(candidates, key=lambda form: (len(form), -float(logits[form[0]])))[0]

    def _importances(
        self, text: ExplainedText, choices: Sequence[Choice], length: int, why: LookOptions
    ) -> tuple[Importance, ...]:
        """Contributions to each output by several methods, attention first."""
        size = (
            sum(parameter.numel() for parameter in text.model.parameters()) * length * len(choices)
        )
        passes = {"leave_one_out": length, "integrated_gradients": 3 * _STEPS}
        attributions: dict[str, list[Attribution]] = {}
        chosen = why.attribute
        outputs = [choice.number for choice in choices], [choice.position for choice in choices]
        for method in _NAMES:
            is_small = method in passes and passes[method] * size <= _PRODUCTS
            is_selected = method in (chosen or _CHEAP) or (chosen is None and is_small)
            if method != "attention" and not is_selected:
                continue  # with the attention all are compared
            if not self.attends and method in BY_ATTENTION:
                continue
            try:
                by = Method(method, steps=_STEPS, rows=max(16, _TOKENS // length))
                attributions[method] = text.attributions(by, *outputs)
            except SettingError:
                if chosen is not None and len(chosen) == 1 and method in chosen:
                    raise
        attention = attributions.get("attention", [None] * len(choices))
        return tuple(
            self._importance(scores[n], attention[n], choice, length)
            for n, choice in enumerate(choices)
            for scores in attributions.values()
            if bool(scores[n].values.isfinite().all())
        )

    def _importance(
        self, score: Attribution, attention: Attribution | None, choice: Choice, length: int
    ) -> Importance:
        values = list(map(short, score.values.tolist()))
        correlation = None
        if attention is not None and score is not attention:
            part = slice(None) if self.part is None else self.part.keys.in_row
            sizes, attention_sizes = (
                attribution.values.cpu()[part].abs() for attribution in (score, attention)
            )
            number = rank_correlation(sizes, attention_sizes)
            correlation = None if math.isnan(number) else short(number)
        change = None if score.baseline_output is None else score.output - score.baseline_output
        of_tokens = self._of_tokens(values, length)
        position = choice.position if self.part is None else None
        return Importance(
            method=_NAMES[score.method],
            values=(*of_tokens, *[0.0] * (length - len(of_tokens))),
            output=choice.output,
            correlation=correlation,
            target=choice.target,
            against=choice.against,
            position=None if position is None else position - self.start,
            start=math.fsum(values[: self.start]) if self.start else None,
            total=None if change is None else short(float(score.values.double().sum()), 5),
            change=None if change is None else short(change, 5),
        )

    def _of_tokens(self, values: Sequence[float], length: int) -> list[float]:
        """The values of the example's tokens, of those of the input's positions."""
        if self.part is None:
            return list(values[self.start : self.start + length])
        keys = self.part.keys
        of_tokens = [0.0] * length
        of_tokens[keys.tokens] = values[keys.in_row]
        return of_tokens


def class_of(labels: Sequence[str], option: str, word: str | None) -> int | None:
    """Number of a class; DataError if there is none such."""
    if word is not None and word not in labels:
        raise DataError(f"{option} must be one of {', '.join(labels)}; got {word!r}.")
    return None if word is None else labels.index(word)


def reading_of_checkpoint(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    inputs: Mapping[str, Tensor],
    example: Example,
    written: Sequence[int] | None,
) -> Reading:
    """A text as a Hugging Face model reads it, and its output, if it writes."""

    def text_of(number: int) -> str:
        decode = getattr(tokenizer, "decode", None)
        text = "" if decode is None else str(decode([number], clean_up_tokenization_spaces=False))
        if text and "\ufffd" not in text:
            return text
        piece = tokenizer.convert_ids_to_tokens([number])[0]  # no text by itself
        return f"#{number}" if piece is None else str(piece)

    def encode(word: str) -> list[int]:
        is_output = written is not None
        name = "text_target" if is_output else "text"
        ids = tokenizer(**{name: word}, add_special_tokens=is_output)["input_ids"]
        return [token for token in ids if is_output or token != tokenizer.unk_token_id]

    ids = inputs["input_ids"][0].tolist()
    is_next = written is None and not example.source_tokens
    mask = getattr(tokenizer, "mask_token_id", None)
    masks = [n for n, token in enumerate(ids) if token == mask]
    labels: list[str] = []
    if type(model).__name__.endswith("ForSequenceClassification"):
        labels = [str(name) for _, name in sorted((model.config.id2label or {}).items())]
    return Reading(
        inputs=inputs,
        name=text_of,
        encode=encode,
        text="" if labels else "input_ids" if written is None else "decoder_input_ids",
        next_ids=written if written is not None else ids[1:] if is_next else (),
        ahead=int(is_next),
        positions=[len(ids) - 1] if is_next else masks,
        written=written,
        labels=labels,
    )


def likeliest_classes(model: "PreTrainedModel", logits: Float[Tensor, " K"]) -> tuple[Share, ...]:
    """Classes with their probabilities, the likeliest first; none of a model of numbers."""
    if len(logits) < 2:
        return ()
    is_multiple = model.config.problem_type == "multi_label_classification"
    logits = logits.float()
    shares, order = (logits.sigmoid() if is_multiple else logits.softmax(-1)).sort(descending=True)
    names = {str(number): name for number, name in (model.config.id2label or {}).items()}
    return named_shares(shares, [names.get(str(number), str(number)) for number in order.tolist()])


def named_shares(shares: Float[Tensor, " K"], names: Sequence[str]) -> tuple[Share, ...]:
    """Probabilities with their names, to four digits."""
    return tuple(zip(names, map(short, shares.tolist()), strict=True))
