"""Attributions of a model's outputs by several methods, as a page shows them."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from torch import Tensor

from regard.choices import choose
from regard.errors import SettingError
from regard.interop.attribute import METHODS, Attribution, ExplainedText
from regard.interop.faithfulness import rank_correlation
from regard.viewer import Importance

_NAMES = {
    "attention": "attention",
    "gradient_times_input": "gradient × input",
    "integrated_gradients": "integrated gradients",
    "leave_one_out": "leave one out",
    "rollout": "rollout",
    "attention_gradient": "attention × gradient",
}
_CHEAP = ("attention", "gradient_times_input", "rollout")
_LONGEST = 1024  # tokens up to which cheap methods are computed unless they are asked for
_PRODUCTS = 2 * 10**11  # that all outputs of a text may take by one method, unless asked for
_MOST_OUTPUTS = 32
_STEPS = 32  # of integrated gradients


@dataclass(frozen=True, slots=True)
class Target:
    """An output to explain.

    Attributes:
        position: Of the logits; None of a class.
        number: The token or class; None is the likeliest.
        against: The token or class that it is held against.
        output: The output token of the example that it is.
    """

    position: int | None = None
    number: int | None = None
    against: int | None = None
    output: int | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Tokens of an example among the positions of a model's input.

    Attributes:
        tokens: How many the example has.
        start: Positions before the first of them, which are no tokens.
    """

    tokens: int
    start: int = 0

    def place(self, values: Tensor) -> tuple[tuple[float, ...], float | None]:
        """Return a value for each token, 0 of those that are not read, and the start's."""
        numbers = [float(f"{value:.4g}") for value in values.tolist()]
        rest = numbers[self.start : self.start + self.tokens]
        start = math.fsum(numbers[: self.start]) if self.start else None
        return (*rest, *[0.0] * (self.tokens - len(rest))), start


def methods_named(names: str | None) -> list[str] | None:
    """The methods that a text such as ``rollout,leave_one_out``, ``all`` or ``none`` names."""
    if names is None or names in ("all", "none"):
        return None if names is None else list(METHODS) if names == "all" else []
    wanted = [name.strip().replace("-", "_") for name in names.split(",")]
    for name in wanted:
        choose("--attribute", name, dict.fromkeys((*METHODS, "all", "none")))
    return wanted


def are_explained(methods: Sequence[str] | None, length: int, *, is_asked: bool) -> bool:
    """Whether outputs of so long a text are explained: short ones, unless it is asked for."""
    return methods != [] and (is_asked or length <= _LONGEST)


def importances(
    text: ExplainedText,
    targets: Sequence[Target],
    layout: Layout,
    *,
    methods: Iterable[str] | None,
    name: Callable[[int], str],
) -> tuple[Importance, ...]:
    """Attributions of each target, attention first, with their rank correlations with it.

    Args:
        text: The model's answer.
        targets: At most 32 are explained.
        layout: Where the example's tokens are.
        methods: None takes attention, gradient × input and rollout of up to 1,024 tokens, and the
            others where they take at most 2·10¹¹ multiplications.
        name: The name of a token or class.

    Raises:
        SettingError: A method that is asked for cannot be computed of the model.
    """
    found: list[Importance] = []
    asked = None if methods is None else set(methods)
    targets = targets[:_MOST_OUTPUTS]
    for target in targets:
        output = text.output(target.number, target.against, target.position)
        attributions: dict[str, Attribution] = {}
        for method in ("attention", *(each for each in METHODS if each != "attention")):
            is_asked = asked is not None and method in asked
            # The others are compared with the attention.
            if asked is not None and not is_asked and (method != "attention" or not asked):
                continue
            if asked is None and not _is_affordable(text, method, layout, len(targets)):
                continue
            try:
                attributions[method] = output.attribute(method, steps=_STEPS)
            except SettingError:
                if is_asked and asked != set(METHODS):
                    raise
        found += [
            _importance(each, attributions.get("attention"), target, layout, name)
            for each in attributions.values()
            if bool(each.values.isfinite().all())
        ]
    return tuple(found)


def _is_affordable(text: ExplainedText, method: str, layout: Layout, outputs: int) -> bool:
    """Whether a method is computed without being asked for."""
    length = layout.start + layout.tokens
    if method in _CHEAP:
        return length <= _LONGEST
    passes = {"leave_one_out": length, "integrated_gradients": 3 * _STEPS}.get(method)
    size = sum(each.numel() for each in text.model.parameters())
    return passes is not None and passes * length * size * outputs <= _PRODUCTS


def _importance(
    found: Attribution,
    attention: Attribution | None,
    target: Target,
    layout: Layout,
    name: Callable[[int], str],
) -> Importance:
    values, start = layout.place(found.values)
    correlation = None
    if attention is not None and found is not attention:
        number = rank_correlation(found.values.cpu().abs(), attention.values.cpu().abs())
        correlation = None if math.isnan(number) else float(f"{number:.4g}")
    chosen = found.target
    change = None if found.baseline_output is None else found.output - found.baseline_output
    return Importance(
        method=_NAMES[found.method],
        values=values,
        output=target.output,
        correlation=correlation,
        target=name(chosen[1]) if chosen is not None else "",
        against=name(chosen[2]) if chosen is not None and chosen[2] is not None else "",
        position=None if target.position is None else target.position - layout.start,
        start=start,
        total=None if change is None else float(f"{float(found.values.double().sum()):.5g}"),
        change=None if change is None else float(f"{change:.5g}"),
    )


def first_difference(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the first position at which two texts differ, both of which go on there."""
    differing = [n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]]
    if not differing:
        raise SettingError(
            "--not must differ from the output in a token that both have; got the same. Give "
            "another word."
        )
    return differing[0]
