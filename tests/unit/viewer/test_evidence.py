from types import SimpleNamespace

import torch

from regard.viewer import importances_of


def test_attention_comes_first_and_the_others_tell_how_they_agree_with_it():
    found = importances_of(
        SimpleNamespace(
            output=(3, 17),
            evidence={
                "removed": torch.tensor([0.5, -1.23456789]),
                "attention": torch.tensor([0.25, 0.75]),
                "gradient": torch.zeros(2),
            },
            correlation={
                ("removed", "gradient"): 0.9,
                ("removed", "attention"): -0.5,
                ("attention", "gradient"): float("nan"),
            },
        ),
        output=3,
    )
    assert [one.method for one in found] == ["attention", "gradient × input", "leave one out"]
    assert [one.correlation for one in found] == [None, None, -0.5]
    assert found[2].values == (0.5, -1.235)
    assert {one.output for one in found} == {3}
