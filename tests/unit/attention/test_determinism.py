import pytest
import torch
from tests.unit.attention.test_memory import CALLS, random_inputs

import regard as rg

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", CALLS)
def test_twice_the_same_by_two_threads(name):
    before, answers = torch.get_num_threads(), []
    try:
        torch.set_num_threads(2)
        for _ in range(2):
            torch.manual_seed(7)
            backend, inputs, options = random_inputs(name, requires_grad=True)
            out = rg.attend(*inputs, backend=backend, **options)
            grads = torch.autograd.grad(out, inputs, torch.randn_like(out))
            answers.append([out, *grads, torch.empty(1013)])  # the next is elsewhere in memory
    finally:
        torch.set_num_threads(before)
    for one, other in zip(*(answer[:-1] for answer in answers), strict=True):
        assert torch.equal(one, other)


LOOKED_AT = {
    "plain": {},
    "causal": {"mask": rg.causal(), "queries": slice(3, -7)},
    "documents": {"mask": rg.documents(torch.arange(701) // 29)},
    "pairs": {"mask": rg.where(lambda b, h, i, j: (i + j) % 3 > 0)},
    "Laplace": {"score": rg.Laplace(3.0), "mask": rg.window(before=20)},
    "ALiBi": {"bias": rg.alibi(), "mask": rg.lengths([701, 70])},
}


@pytest.mark.parametrize("name", LOOKED_AT)
def test_the_same_summary_by_any_number_of_threads(name):
    torch.manual_seed(7)
    query, key = (torch.randn(2, 4, 701, 16) for _ in range(2))
    before, summaries = torch.get_num_threads(), []
    try:
        for number in (1, 2, 5):
            torch.set_num_threads(number)
            summaries.append(rg.summarize(query, key, **LOOKED_AT[name]).tensors())
    finally:
        torch.set_num_threads(before)
    for other in summaries[1:]:
        assert all(torch.equal(summaries[0][each], other[each]) for each in other)
