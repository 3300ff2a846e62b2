"""The best places of rows, against a stable sort of each row."""

import pytest
import torch
from torch import Tensor

from regard.attention.inspect.statistics import top_places


def _by_sorting(row: Tensor, count: int) -> list[int]:
    values = row.tolist()
    there = [place for place, value in enumerate(values) if value > float("-inf")]
    return sorted(there, key=lambda place: (-values[place], place))[:count]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 5, 8, 131, 257, 1031])
@pytest.mark.parametrize("kinds", [2, 10**6])
def test_the_best_places_are_those_of_a_stable_sort(
    dtype: torch.dtype, width: int, kinds: int
) -> None:
    generator = torch.Generator().manual_seed(width)
    rows = torch.randint(-kinds, kinds, (3, width), generator=generator).to(dtype) / 7
    rows[rows == 0] *= -1.0  # zeros with a sign are as good as those without
    rows[1, ::2] = float("-inf")
    rows[2] = float("-inf")
    places, is_there = top_places(rows, 8)
    for row, found, there in zip(rows, places, is_there, strict=True):
        assert found[there].tolist() == _by_sorting(row, 8)
        assert not found[~there].any()


def test_zeros_of_both_signs_are_equal() -> None:
    places, _ = top_places(torch.tensor([-1.0, -0.0, 0.0, -0.0]), 3)
    assert places.tolist() == [1, 2, 3]
