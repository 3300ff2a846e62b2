"""Settings of points, without torch."""

from dataclasses import dataclass
from typing import Annotated, Literal

from regard.fields import Natural, Weight, at_least, check_fields
from regard.text.records import OnBadLine


@dataclass(frozen=True, kw_only=True, slots=True)
class RegressionData:
    """Where the points are.

    Attributes:
        train: CSV or TSV files. What is guessed from, too: a kernel regression is its points.
        valid: The same, for validation; empty takes a few points from the training ones.
        test: The same, for ``evaluate``; or ``held out`` of the training text.
        inputs: Names of the input columns in the header, or their numbers from 1, as text; none
            means all but the target.
        target: Name or number of the target's column; empty is the last.
        scale: Whether inputs are taken as they are (``none``), or from their mean and in standard
            deviations (``deviation``), so that one bandwidth suits them all.
        on_bad_line: Whether a line that cannot be read is an ``error``, or is left out (``skip``).
        example: What there is without files: ``sine``, y = 2 sin x + x^0.8, or ``none``.
        points: How many points of the example are drawn.
        noise: Deviation of the noise in their targets.
        seed: Another one draws others.

    Raises:
        SettingError: A value is of another type, none of the choices, or out of range.

    Example:
        >>> from regard.tasks import read_parts, recipe_from_table
        >>> table = {"example": "sine", "points": 3, "noise": 0.0}
        >>> parts = read_parts(recipe_from_table({"task": "regression", "data": table}))
        >>> [(round(point.inputs[0], 2), round(point.target, 2)) for point in parts.train]
        [(0.44, 1.38), (2.48, 3.3), (3.84, 1.65)]
    """

    train: tuple[str, ...] | str = ()
    valid: tuple[str, ...] | str = ()
    test: tuple[str, ...] | str = ()
    inputs: tuple[str, ...] = ()
    target: str = ""
    scale: Literal["none", "deviation"] = "none"
    on_bad_line: OnBadLine = "error"
    example: Literal["none", "sine"] = "none"
    points: Annotated[int, at_least(2)] = 50
    noise: Weight = 0.5
    seed: Natural = 0

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class RegressionConfig:
    """Objective that training minimises.

    Attributes:
        loss: The ``mean`` of a batch's squared errors, or their ``sum``.

    Raises:
        SettingError: ``loss`` is none of these.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> recipe_from_table({"task": "regression", "head": {"loss": "sum"}}).head
        RegressionConfig(loss='sum')
        >>> recipe_from_table({"task": "regression", "head": {"loss": "median"}})
        Traceback (most recent call last):
        regard.errors.SettingError: head.loss must be one of mean, sum; got 'median'. Did you mean
        'mean'?
    """

    loss: Literal["mean", "sum"] = "mean"

    def __post_init__(self) -> None:
        check_fields(self)
