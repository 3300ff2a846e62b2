"""A number for numbers."""

from regard.tasks.regression.task import (
    Guess,
    PointBatch,
    Regression,
    RegressionConfig,
    RegressionData,
)

__all__ = ["Guess", "PointBatch", "Regression", "RegressionConfig", "RegressionData"]
