"""A number for numbers."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.regression.settings import RegressionConfig, RegressionData
    from regard.tasks.regression.task import Guess, PointBatch, Regression

__all__ = ["Guess", "PointBatch", "Regression", "RegressionConfig", "RegressionData"]

__getattr__ = _names(__name__, __file__)
