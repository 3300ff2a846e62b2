"""Kernel regression behaves as scikit-learn's estimators do."""

import numpy as np
import pytest
import torch

pytest.importorskip("sklearn")

from sklearn.base import clone

from regard.errors import SettingError
from regard.models import KernelRegression, KernelRegressionConfig, KernelRegressor

X = np.linspace(0, 3, 40)[:, None]
Y = np.sin(2 * X[:, 0])


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_shapes")
def test_scikit_learn_finds_nothing_wrong():
    from sklearn.utils.estimator_checks import check_estimator

    failed = check_estimator(KernelRegressor(), on_fail=None, on_skip=None)
    assert {each["check_name"] for each in failed if each["status"] == "failed"} == set()


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "epanechnikov", "box"])
def test_predictions_are_those_of_the_layer(kernel):
    regressor = KernelRegressor(kernel=kernel, bandwidth=0.3).fit(X, Y)
    layer = KernelRegression(KernelRegressionConfig(kernel=kernel, bandwidth=0.3)).double()
    with torch.no_grad():
        want = layer(*(torch.from_numpy(each) for each in (X, X, Y[:, None])))
    np.testing.assert_allclose(regressor.predict(X), want[:, 0])


def test_the_bandwidth_chosen_is_the_one_that_predicts_each_point_best_from_the_others():
    noisy = Y + np.random.default_rng(0).normal(0, 0.2, 40)
    chosen = KernelRegressor().fit(X, noisy)
    for factor in (0.5, 2):
        other = clone(chosen).set_params(bandwidth=factor * chosen.bandwidth_).fit(X, noisy)
        models = [each._model(each.bandwidth_) for each in (chosen, other)]
        assert chosen._error(models[0]) < chosen._error(models[1])
    assert chosen.score(X, Y) > 0.9


def test_out_of_reach_the_mean_is_predicted():
    regressor = KernelRegressor(kernel="box", bandwidth=0.1).fit(X, np.stack([Y, -Y], 1))
    np.testing.assert_allclose(regressor.predict([[99.0]]), [[Y.mean(), -Y.mean()]])


@pytest.mark.usefixtures("unchecked_shapes")
def test_what_is_wrong_is_named():
    with pytest.raises(SettingError, match="kernel must be one of"):
        KernelRegressor(kernel="gausian").fit(X, Y)
    with pytest.raises(SettingError, match="bandwidth must be above 0"):
        KernelRegressor(bandwidth=0.0).fit(X, Y)
