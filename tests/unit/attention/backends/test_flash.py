"""Flash attention of sequences: the windows that the kernel is given, and on a GPU its answers."""

import pytest
import torch

from regard.attention import ScaledDot, attend, causal, documents, explain, lengths, window
from regard.attention.backends.flash import _sequences_of
from regard.attention.engine.options import CallOptions
from regard.attention.engine.request import Call, make_request
from regard.errors import SettingError

IDS = torch.repeat_interleave(torch.arange(4), torch.tensor([5, 31, 2, 21]))
OTHER = torch.repeat_interleave(torch.arange(4), torch.tensor([21, 2, 31, 5]))
N = len(IDS)
WINDOWS = {
    "before": causal() & window(before=7),
    "both sides": window(before=3, after=5),
    "from the third key": window(before=4, after=0, first=3),
}


def documents_on(device):
    ids, rows = IDS.to(device), torch.stack([IDS, OTHER]).to(device)
    return {
        "documents": documents(ids),
        "causal documents": documents(ids) & causal(),
        "documents by row": documents(rows),
        "windows in documents": documents(rows) & window(before=3, after=1),
    }


DOCUMENTS = documents_on("cpu")


def request_of(mask, keys=N):
    query, key = torch.randn(2, 4, N, 16), torch.randn(2, 2, keys, 16)
    return make_request(Call(query, key, key, CallOptions(score=ScaledDot(), mask=mask)))


@pytest.mark.parametrize(
    ("mask", "keys"),
    [(mask, N) for mask in (WINDOWS | DOCUMENTS).values()] + [(m, 61) for m in WINDOWS.values()],
)
def test_sequences_see_the_keys_of_the_mask(mask, keys):
    request = request_of(mask, keys)
    sequences = _sequences_of(request)
    queries, ends = (starts.tolist() for starts in sequences.starts)
    before, after = sequences.window
    visible = torch.zeros(2 * N, 2 * keys, dtype=torch.bool)
    for s in range(len(queries) - 1):
        rows, own = queries[s + 1] - queries[s], ends[s + 1] - ends[s]
        assert rows <= sequences.longest[0]
        assert own <= sequences.longest[1]
        for i in range(rows):
            # As the kernel has it: the last query and the last key of a sequence are one position.
            middle = i + own - rows
            first = 0 if before < 0 else max(0, middle - before)
            last = own - 1 if after < 0 else min(own - 1, middle + after)
            visible[queries[s] + i, ends[s] + first : ends[s] + last + 1] = True
    expected = request.mask.dense().expand(2, 4, N, keys)[:, 0]
    for b in range(2):
        rows, own = slice(b * N, b * N + N), slice(b * keys, b * keys + keys)
        assert torch.equal(visible[rows, own], expected[b])
    assert visible.sum() == expected.sum()


def test_other_masks_have_no_sequences():
    for mask in (causal() & lengths([9, 40]), ~window(before=3), documents(IDS) | causal()):
        assert _sequences_of(request_of(mask)) is None
    assert _sequences_of(request_of(window(before=3, after=0, first=-9))) is None


def test_a_cpu_is_refused():
    with pytest.raises(SettingError, match="'flash', but it is for NVIDIA GPUs"):
        attend(torch.zeros(5, 16), torch.zeros(7, 16), mask=WINDOWS["before"], backend="flash")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("groups", [4, 2])
@pytest.mark.parametrize("mask", WINDOWS | DOCUMENTS)
def test_on_a_gpu_answers_and_gradients_are_those_of_float64(mask, groups, dtype):
    mask = (WINDOWS | documents_on("cuda"))[mask]
    shapes = [(2, 4, N, 24), (2, groups, N, 24), (2, groups, N, 20)]
    narrow = [torch.randn(s, device="cuda", dtype=dtype).requires_grad_() for s in shapes]
    assert explain(*narrow, mask=mask).backend == "flash"
    answers = []
    for inputs in (narrow, [t.detach().double().requires_grad_() for t in narrow]):
        out = attend(*inputs, mask=mask)
        answers.append([out, *torch.autograd.grad(out.square().sum(), inputs)])
    for one, other in zip(*answers, strict=True):
        torch.testing.assert_close(one.double(), other, atol=6e-2, rtol=6e-2)
