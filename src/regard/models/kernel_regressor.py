"""Kernel regression as an estimator of scikit-learn, which has to be installed."""

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from regard.models.configs.readers import KernelRegressionConfig
from regard.models.kernel_regression import KernelRegression

# Bandwidths that are tried, in deviations of the inputs.
_TRIED = np.geomspace(1 / 64, 8, 28)


class KernelRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Nadaraya-Watson regression with ``fit``, ``predict``, ``score`` and ``get_params``.

    ``f(x) = Σ K((x − xᵢ) / h) yᵢ / Σ K((x − xⱼ) / h)``, as :class:`KernelRegression` has it. All
    inputs share one bandwidth h: scale them first where their units differ, as by
    ``StandardScaler`` in a pipeline. A place that no kernel of finite reach covers gets the mean of
    the targets.

    Args:
        kernel: ``gaussian``, ``laplace``, ``epanechnikov`` or ``box``.
        bandwidth: How far "near" reaches, in the unit of the inputs. None chooses the one that
            guesses each training target best from the others.

    Attributes:
        bandwidth_: The bandwidth in use.
        n_features_in_: Inputs.

    Example:
        >>> X, y = np.linspace(0, 3, 30)[:, None], np.sin(np.linspace(0, 3, 30))
        >>> regressor = KernelRegressor().fit(X, y)
        >>> regressor.predict([[1.5]]).round(2), round(regressor.score(X, y), 2)
        (array([1.]), 1.0)
    """

    def __init__(self, *, kernel: str = "gaussian", bandwidth: float | None = None) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> "KernelRegressor":
        """Keep the training points, and choose the bandwidth.

        Args:
            X: Inputs, (M, D).
            y: Targets, (M,) or (M, E).

        Raises:
            SettingError: The kernel is unknown, or the bandwidth not above 0.
            ValueError: The numbers are not finite, or do not pair up.
        """
        checked = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        inputs, targets = map(np.array, checked)
        self.places_ = torch.from_numpy(inputs)
        self.seen_ = torch.from_numpy(targets.astype(np.float64).reshape(len(inputs), -1))
        self.is_flat_ = targets.ndim == 1
        spread = float(inputs.std(axis=0).max()) or 1.0
        tried = _TRIED * spread if self.bandwidth is None else [self.bandwidth]
        models = [self._model(bandwidth) for bandwidth in tried]
        best = min(models, key=self._error) if len(inputs) > 1 and len(models) > 1 else models[-1]
        self.bandwidth_ = best.config.bandwidth
        return self

    @torch.no_grad()
    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """The guess at each place of X, (N,) or (N, E).

        Raises:
            NotFittedError: ``fit`` was not called.
            ValueError: X has other inputs, or numbers that are not finite.
        """
        check_is_fitted(self)
        inputs = np.array(validate_data(self, X, dtype=np.float64, reset=False))
        guesses = self._guess(self._model(self.bandwidth_), torch.from_numpy(inputs)).numpy()
        return guesses[:, 0] if self.is_flat_ else guesses

    def _model(self, bandwidth: float) -> KernelRegression:
        config = KernelRegressionConfig(kernel=self.kernel, bandwidth=float(bandwidth))  # type: ignore[arg-type]
        return KernelRegression(config, dim=self.places_.shape[1]).double()

    def _guess(self, model: KernelRegression, inputs: torch.Tensor) -> torch.Tensor:
        """The guesses, the mean where no training point is in reach."""
        with_ones = torch.cat([self.seen_, torch.ones_like(self.seen_[:, :1])], dim=1)
        *guesses, reached = model(inputs, self.places_, with_ones).split(1, dim=1)
        return torch.where(reached > 0, torch.cat(guesses, dim=1), self.seen_.mean(0))

    @torch.no_grad()
    def _error(self, model: KernelRegression) -> float:
        """The mean squared error of each training target guessed from the others."""
        errors = model.leave_one_out(self.places_, self.seen_) - self.seen_
        return float(errors.square().mean())
