"""Rows answered while a page is read are those that the page of a short text holds."""

import numpy as np
import pytest

from regard.inference import Predictor
from regard.inference.live_rows import rows_of
from regard.inference.looking import document, look_at


def test_rows_are_those_of_the_look(predictor: Predictor) -> None:
    shown = document(predictor, [look_at(predictor, "我爱中国。", "I love China.")])
    rows = rows_of(predictor, shown)
    for kept in shown.examples[0].maps:
        wanted = np.array(kept.rows)
        found = rows(0, kept.kind, kept.layer, kept.head, [0, len(wanted) - 1])
        assert found == pytest.approx(wanted[[0, -1]], abs=1e-3)
    cross = [kept for kept in shown.examples[0].maps if kept.kind == "cross"]
    layers = {kept.layer for kept in cross}
    means = [np.mean([k.rows for k in cross if k.layer == layer], axis=0) for layer in layers]
    found = rows(0, "cross", "mean", "mean", [1])
    assert found[0] == pytest.approx(np.mean(means, axis=0)[1], abs=1e-3)
    assert rows(0, "cross", 99, 0, [0]) is None
