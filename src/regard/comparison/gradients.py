"""How much of a gradient arrives from far away: recurrence, LSTM and attention."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, log
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import attend
from regard.checks import check_at_least, check_positive
from regard.comparison.report import (
    ComparisonReport,
    ComparisonTable,
    Measurements,
    Plot,
    lines_over,
    short,
)

RADII = (0.5, 0.9, 1.0, 1.5)


@dataclass(frozen=True, kw_only=True, slots=True)
class GradientCurve:
    """One model's gradients.

    Attributes:
        title: What it is called.
        radius: The spectral radius of its recurrent weight; None where there is none to set.
        norms: Of the Jacobian of the last output by the input at distance 0, 1, …; the geometric
            mean over the draws.
        low: The least of the draws.
        high: The largest.
        factor: What one step more multiplies the norm by: the slope of its logarithm, over all
            distances but the last. One is neither vanishing nor exploding.
        factor_low: The least of the draws.
        factor_high: The largest.
    """

    title: str
    radius: int | float | None
    norms: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    factor: float
    factor_low: float
    factor_high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Gradients(Measurements):
    """Gradient norm against distance.

    Attributes:
        length: Positions.
        width: Width of inputs and states.
        input_scale: Deviation of the inputs.
        draws: How many times weights and inputs were drawn.
        curves: One for each model.

    Example:
        >>> found = gradients(length=12, width=8, radii=(0.5,), draws=2)
        >>> [curve.title for curve in found.curves]
        ['RNN, ρ = 0.5', 'LSTM', 'LSTM, forget bias 1', 'self-attention']
        >>> recurrence, *_, attention = found.curves
        >>> [curve.norms[10] < curve.norms[1] / 100 for curve in (recurrence, attention)]
        [True, False]
    """

    length: int
    width: int
    input_scale: int | float
    draws: int
    curves: tuple[GradientCurve, ...]

    def report(self) -> ComparisonReport:
        """As a table and a plot."""
        far = self.length - 1
        middle = far // 2
        return ComparisonReport(
            title="Gradients against distance",
            text=(
                "How strongly the last output depends on an input so many places back: the norm "
                f"of its Jacobian, the geometric mean of {self.draws} draws. In a recurrence every "
                "step multiplies by the recurrent weight and by the slope of tanh, so it vanishes "
                "below a spectral radius ρ of one; above, it explodes while the states are small, "
                "and grows slowly where they have become so large that tanh is flat. An LSTM's "
                "forget gate is such a factor too, nearer to one. Attention reaches every place "
                "in one step, so distance plays no part.",
            ),
            tables=(
                ComparisonTable(
                    title=f"Norm of the gradient (n = {self.length}, d = {self.width}, "
                    f"inputs of deviation {self.input_scale:g})",
                    columns=(
                        "model",
                        "distance 1",
                        f"{middle}",
                        f"{far}",
                        "factor a step",
                        "of draws",
                    ),
                    rows=tuple(
                        (
                            curve.title,
                            *(short(curve.norms[place]) for place in (1, middle, far)),
                            f"{curve.factor:.3f}",
                            f"{curve.factor_low:.3f} to {curve.factor_high:.3f}",
                        )
                        for curve in self.curves
                    ),
                ),
            ),
            pictures=(
                Plot(
                    title="Gradient of the last output by an input",
                    across="distance of the input",
                    up="norm",
                    lines=lines_over(
                        range(self.length), ((curve.title, curve.norms) for curve in self.curves)
                    ),
                    log_up=True,
                ),
            ),
        )


def gradients(
    *,
    length: int = 64,
    width: int = 32,
    radii: Sequence[int | float] = RADII,
    input_scale: int | float = 0.01,
    draws: int = 5,
    progress: Callable[[int], None] = lambda count: None,
) -> Gradients:
    """The norm of the last output's gradient by an input, against how far back the input is.

    Of ``h_t = tanh(W x_t + U h_{t−1})`` with U an orthogonal matrix times its spectral radius ρ: at
    most ρ a step, since tanh is nowhere steeper than one; below one it vanishes (Bengio et al.,
    1994; Pascanu et al., 2013, https://arxiv.org/abs/1211.5063). Of an LSTM, whose forget gate
    takes U's place, as torch draws it, and with one added to that gate's bias, as Jozefowicz et
    al. (2015) advise. Of self-attention, which looks at every place at once. In float64, the
    Frobenius norm of the Jacobian.

    Args:
        length: Positions.
        width: Width of inputs and states.
        radii: Spectral radii of the recurrent weight.
        input_scale: Deviation of the inputs. While they are small tanh is nearly straight, and the
            recurrent weight alone decides; inputs of deviation one let gradients vanish at ρ = 1.5.
        draws: How many times weights and inputs are drawn, which gives the spread.
        progress: Told of each model that is done.

    Example:
        >>> found = gradients(length=12, width=8, radii=(0.5,), draws=2)
        >>> [(curve.title, round(curve.factor, 1)) for curve in found.curves[:1]]
        [('RNN, ρ = 0.5', 0.5)]
    """
    check_at_least("length", length, 4)
    check_at_least("width", width, 1)
    check_at_least("draws", draws, 1)
    check_positive("input_scale", input_scale)
    for each in radii:
        check_positive("radius", each)
    models: list[tuple[str, int | float | None, Callable[[], _Model]]] = [
        (f"RNN, ρ = {each:g}", each, partial(_recurrence, width, each)) for each in radii
    ]
    models += [
        ("LSTM", None, partial(_lstm, width, forget_bias=0.0)),
        ("LSTM, forget bias 1", None, partial(_lstm, width, forget_bias=1.0)),
        ("self-attention", None, partial(_self_attention, width)),
    ]
    curves = []
    for title, radius, make in models:
        drawn = [_norms(make, (length, width), input_scale, seed) for seed in range(draws)]
        progress(1)
        factors = [_factor(norms) for norms in drawn]
        columns = list(zip(*drawn, strict=True))
        curves.append(
            GradientCurve(
                title=title,
                radius=radius,
                norms=tuple(_geometric_mean(column) for column in columns),
                low=tuple(min(column) for column in columns),
                high=tuple(max(column) for column in columns),
                factor=_geometric_mean(factors),
                factor_low=min(factors),
                factor_high=max(factors),
            )
        )
    return Gradients(
        length=length, width=width, input_scale=input_scale, draws=draws, curves=tuple(curves)
    )


_Model = Callable[[Float[Tensor, "N C"]], Float[Tensor, " C"]]


def _norms(
    make: Callable[[], _Model], shape: tuple[int, int], input_scale: int | float, seed: int
) -> list[float]:
    """The norm of the Jacobian of the last output by each input, the nearest first."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make()
        inputs = (input_scale * torch.randn(shape, dtype=torch.float64)).requires_grad_()
        last = model(inputs)
    jacobian = torch.stack(
        [torch.autograd.grad(number, inputs, retain_graph=True)[0] for number in last]
    )  # (C, N, C)
    norms = jacobian.flip(1).square().sum(dim=(0, 2)).sqrt()
    return [norm.item() for norm in norms]


def _recurrence(width: int, radius: int | float) -> _Model:
    cell = nn.RNN(width, width, bias=False).double()
    nn.init.orthogonal_(cell.get_parameter("weight_hh_l0")).data.mul_(radius)

    def last_state(inputs: Tensor) -> Tensor:
        return cast(Tensor, cell(inputs)[0][-1])

    return last_state


def _lstm(width: int, *, forget_bias: float) -> _Model:
    cell = nn.LSTM(width, width).double()
    with torch.no_grad():
        cell.get_parameter("bias_ih_l0")[width : 2 * width] += forget_bias

    def last_state(inputs: Tensor) -> Tensor:
        return cast(Tensor, cell(inputs)[0][-1])

    return last_state


def _self_attention(width: int) -> _Model:
    maps = [nn.Linear(width, width, bias=False).double() for _ in range(3)]

    def last_state(inputs: Tensor) -> Tensor:
        query, key, value = (one(inputs) for one in maps)
        return attend(query[-1:], key, value)[0]

    return last_state


def _factor(norms: Sequence[float]) -> float:
    """What a step multiplies a norm by, as a line through the logarithms has it."""
    # Distance 0 is left out: it has the way through the state's own query, or no recurrence at all.
    logs = [log(max(norm, 1e-300)) for norm in norms[1:-1]]
    return exp(statistics.linear_regression(range(len(logs)), logs).slope)


def _geometric_mean(values: Sequence[float]) -> float:
    return exp(statistics.fmean(log(max(value, 1e-300)) for value in values))
