"""Besides attention, on a page: contributions of tokens, predictions by layer, loss by token."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from regard.choices import choose
from regard.errors import DataError, SettingError
from regard.interop.attribute import METHODS, Attribution, ExplainedText
from regard.interop.faithfulness import logits_of, rank_correlation
from regard.interop.lens import Readout
from regard.viewer import Example, Importance

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
# Position, target and what it is held against, as ``attribute`` takes them.
_Chosen = tuple[int | None, int | None, int | None]


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
    """Inputs of a model for the text of an example, and the outputs that may be explained.

    Attributes:
        inputs: Of one text, by name.
        name: The name of a token, or of a class.
        encode: The ids of a word or an output.
        text: The input at whose positions tokens are predicted; empty of a classifier.
        next_ids: The tokens that stand in the text, from the first that is predicted.
        ahead: 1 where a position of the example predicts the token after it.
        start: Positions of the input before the first token of the example.
        places: Positions whose predictions are explained.
        written: All tokens of an output, each of which is explained.
        labels: The classes of a classifier.
    """

    inputs: Mapping[str, Tensor]
    name: Callable[[int], str]
    encode: Callable[[str], Sequence[int]]
    text: str = ""
    next_ids: Sequence[int] = ()
    ahead: int = 0
    start: int = 0
    places: Sequence[int] = ()
    written: Sequence[int] | None = None
    labels: Sequence[str] = ()

    @torch.no_grad()
    def explain(
        self,
        model: nn.Module,
        example: Example,
        *,
        target: str | None = None,
        against: str | None = None,
        methods: Sequence[str] | None = None,
    ) -> Example:
        """Add contributions, predictions by layer and the loss of each token to an example.

        Args:
            model: In evaluation mode.
            example: Of the text.
            target: A word, whose first token is explained, or a class; None is the likeliest.
            against: What it is held against; of what was written, another output.
            methods: Of ``attribute``. None takes attention, gradient × input and rollout of up to
                1,024 tokens, and integrated gradients and leave-one-out where these take at most
                2·10¹¹ multiplications.

        Raises:
            SettingError: A method is asked for that cannot be computed of the model.
            DataError: There is no such token or class.
        """
        text = ExplainedText(model, self.inputs, body=getattr(model, "base_model", None))
        is_requested = methods is not None or target is not None or against is not None
        length = len(example.source_tokens or example.output_tokens)
        try:
            if self.text:
                example = self._predicted(text, example)
            if methods == [] or not (is_requested or length <= _LONGEST):
                return example
            logits = logits_of(model, text.answer)[0]
        except SettingError:  # it has no logits
            if is_requested and methods != []:
                raise
            return example
        importances: list[Importance] = []
        for output, chosen in self._chosen(logits, target, against):
            importances += self._importances(text, output, chosen, length, methods)
        return replace(example, importances=tuple(importances) or example.importances)

    def _predicted(self, text: ExplainedText, example: Example) -> Example:
        """The example with predictions by layer, and with the loss of each output token."""
        readout = Readout(text, self.text)
        lens = readout.lens(self.name, self.ahead)
        surprise: list[float | None] = [*[None] * self.ahead, *readout.surprise(self.next_ids)]
        if len(surprise) == len(example.output_tokens):
            short = (None if nats is None else float(f"{nats:.5g}") for nats in surprise)
            example = replace(example, surprise=tuple(short))
        return replace(example, lens=lens)

    def _chosen(
        self, logits: Tensor, target: str | None, against: str | None
    ) -> list[tuple[int | None, _Chosen]]:
        """Outputs to explain: the token of the example, and what ``attribute`` is to be told."""
        if self.written is not None:
            tokens = list(enumerate(self.written))[:_MOST_OUTPUTS]
            if against is None:
                return [(n, (n, token, None)) for n, token in tokens]
            for (n, token), other in zip(tokens, self.encode(against), strict=False):
                if token != other:
                    return [(n, (n, token, other))]
            raise DataError(f"--not must differ from the output within it; got {against!r}.")
        if self.labels:
            return [(None, (None, self._class("target", target), self._class("--not", against)))]
        if not self.places and (target or against):
            raise DataError("text must have a mask where --target is to stand; got none.")
        outputs: list[tuple[int | None, _Chosen]] = []
        for position in self.places[:_MOST_OUTPUTS]:
            first = self._token("target", target, logits[position])
            second = self._token("--not", against, logits[position])
            if first is not None and first == second:
                raise DataError(
                    f"--not must differ from --target in its first token; got {against!r}, which "
                    f"begins with {self.name(first)!r} too."
                )
            outputs.append((None, (position, first, second)))
        return outputs

    def _class(self, option: str, word: str | None) -> int | None:
        if word is not None and word not in self.labels:
            raise DataError(f"{option} must be one of {', '.join(self.labels)}; got {word!r}.")
        return None if word is None else self.labels.index(word)

    def _token(self, option: str, word: str | None, logits: Tensor) -> int | None:
        """The first token of a word, after a space or not: as the model has it likelier."""
        if word is None:
            return None
        forms = [self.encode(form) for form in {word, f" {word.lstrip()}"}]
        named = [[token for token in form if self.name(token).strip("▁Ġ ")] for form in forms]
        first = [form[0] for form in named if form]
        if not first:
            raise DataError(f"{option} must have tokens that the model knows; got {word!r}.")
        return max(first, key=lambda token: float(logits[token]))

    def _importances(
        self,
        text: ExplainedText,
        output: int | None,
        chosen: _Chosen,
        length: int,
        methods: Sequence[str] | None,
    ) -> list[Importance]:
        """Contributions to one output by several methods, attention first."""
        position, target, against = chosen
        outputs = 1 if self.written is None else min(len(self.written), _MOST_OUTPUTS)
        size = sum(each.numel() for each in text.model.parameters()) * length * outputs
        passes = {"leave_one_out": length, "integrated_gradients": 3 * _STEPS}
        attributions: dict[str, Attribution] = {}
        for method in _NAMES:
            is_small = method in passes and passes[method] * size <= _PRODUCTS
            is_selected = method in (methods or _CHEAP) or (methods is None and is_small)
            if method != "attention" and not is_selected:
                continue  # with the attention all are compared
            try:
                attributions[method] = text.attribute(
                    method, target=target, against=against, position=position, steps=_STEPS
                )
            except SettingError:
                if methods is not None and len(methods) == 1 and method in methods:
                    raise
        attention = attributions.get("attention")
        return [
            self._importance(each, attention, output, position, length)
            for each in attributions.values()
            if bool(each.values.isfinite().all())
        ]

    def _importance(
        self,
        score: Attribution,
        attention: Attribution | None,
        output: int | None,
        position: int | None,
        length: int,
    ) -> Importance:
        values = [float(f"{value:.4g}") for value in score.values.tolist()]
        of_tokens = values[self.start : self.start + length]
        correlation = None
        if attention is not None and score is not attention:
            number = rank_correlation(score.values.cpu().abs(), attention.values.cpu().abs())
            correlation = None if math.isnan(number) else float(f"{number:.4g}")
        change = None if score.baseline_output is None else score.output - score.baseline_output
        assert score.target is not None
        _, token, against = score.target
        name = self.labels.__getitem__ if self.labels else self.name
        return Importance(
            method=_NAMES[score.method],
            values=(*of_tokens, *[0.0] * (length - len(of_tokens))),
            output=output,
            correlation=correlation,
            target=name(token),
            against="" if against is None else name(against),
            position=None if position is None else position - self.start,
            start=math.fsum(values[: self.start]) if self.start else None,
            total=None if change is None else float(f"{float(score.values.double().sum()):.5g}"),
            change=None if change is None else float(f"{change:.5g}"),
        )
