"""What runs is what ``explain`` says: the path, torch's operators, and what they are given."""

import pytest
import torch
from tests.formulas.case import Case
from tests.formulas.masks import MASKS
from tests.formulas.scores import SCORES
from tests.formulas.sizes import Sizes
from tests.formulas.weightings import WEIGHTINGS
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from regard.attention import (
    Bilinear,
    Cosine,
    Gaussian,
    attend,
    causal,
    documents,
    explain,
    lengths,
    prefix,
    window,
)
from regard.attention.plan import BACKENDS

pytestmark = pytest.mark.slow


@pytest.fixture
def served(monkeypatch):
    """The names of the paths that ran, in the order of their first call."""
    names = []

    def spied(name, run):
        def spy(request):
            names.append(name)
            return run(request)

        return spy

    for name, module in BACKENDS.items():
        monkeypatch.setattr(module, "run", spied(name, module.run))
    return names


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("score", SCORES)
def test_the_path_that_runs_is_the_one_explained(served, score, requires_grad):
    sizes = Sizes(N=61, M=67, E=11)
    kinds = [{"mask": mask} for mask in (None, *MASKS)]
    kinds += [{"weighting": weighting} for weighting in WEIGHTINGS]
    for kind in kinds:
        case = Case.draw(sizes, torch.float32, score=score, **kind)
        case = case.as_dtype(torch.float32, requires_grad=requires_grad)
        for backend in [None, *case.backends(gradients=requires_grad)]:
            served.clear()
            plan = explain(*case.inputs, **case.options(), backend=backend)
            assert not served
            attend(*case.inputs, **case.options(), backend=backend)
            assert served[0] == plan.backend
            assert backend in (None, plan.backend)
            # Documents are each handed on; nothing else is.
            passed_on = {"short", "sdpa", "tiled"} if plan.backend == "packed" else set()
            assert set(served[1:]) <= passed_on


class Flash(TorchDispatchMode):
    """Keeps what torch's fused kernel is given."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default:
            self.calls.append((args, kwargs or {}))
        return func(*args, **(kwargs or {}))


def make(*, N=301, M=307, heads=4, groups=4, dim=16, value_dim=16, dtype=torch.float32):
    shapes = [(2, heads, N, dim), (2, groups, M, dim), (2, groups, M, value_dim)]
    return [torch.randn(shape).to(dtype) for shape in shapes]


PLAIN = [
    ({}, {}),
    ({}, {"mask": lengths([300, 7])}),
    ({}, {"mask": causal(first=0)}),
    ({}, {"mask": causal(first=3)}),
    ({}, {"mask": prefix(5) | causal()}),
    ({}, {"bias": torch.ones(4, 1, 307)}),
    ({}, {"bias": torch.ones(307), "mask": causal(first=0)}),
    ({"groups": 2}, {}),
    ({"value_dim": 11}, {}),
    ({"dim": 11}, {}),
    ({"dtype": torch.bfloat16}, {}),
    ({"dtype": torch.float64}, {}),
    ({}, {"score": Gaussian(4.0)}),
    ({}, {"score": Gaussian(0.05)}),
    ({}, {"score": Bilinear(torch.eye(16))}),
    ({}, {"score": Cosine(0.3), "mask": lengths([300, 7])}),
]


@pytest.mark.parametrize(("shape", "options"), PLAIN)
def test_the_fused_kernel_runs_once_with_what_the_notes_say(shape, options):
    inputs = make(**shape)
    plan = explain(*inputs, **options, backend="sdpa")
    with Flash() as flash:
        attend(*inputs, **options, backend="sdpa")
    (((query, key, value, *rest), named),) = flash.calls
    is_causal = rest[1] if len(rest) > 1 else named.get("is_causal", False)
    mask = named.get("attn_mask")
    said = "; ".join(plan.notes)
    has_mask, has_bias = "mask" in options, "bias" in options
    assert ("the mask is a flag" in said) == is_causal
    assert ("the mask is a tensor" in said) == (has_mask and not is_causal)
    assert (mask is not None) == (has_bias or (has_mask and not is_causal))
    assert ("in torch.float64" in said) == (query.dtype != inputs[0].dtype)
    key_dim = shape.get("dim", 17 if "Gaussian" in str(options) else 16)
    assert ("padded" in said) == (key_dim != shape.get("value_dim", 16))
    assert query.shape[-1] == key.shape[-1] == value.shape[-1]


def test_documents_are_attended_one_by_one():
    ids = torch.repeat_interleave(torch.arange(5), torch.tensor([90, 1, 150, 20, 40]))
    inputs = make(M=301)
    plan = explain(*inputs, mask=documents(ids))
    assert (plan.backend, plan.notes[0].split(",")[0]) == ("packed", "5 documents")
    with Flash() as flash:
        attend(*inputs, mask=documents(ids))
    assert [call[0][0].shape[2] for call in flash.calls] == [90, 1, 150, 20, 40]
    assert all(call[0][1].shape[2] == call[0][0].shape[2] for call in flash.calls)


HIDING = pytest.mark.parametrize(
    ("mask", "share"),
    [
        (causal(), 0.6),
        (window(before=40, after=0), 0.2),
        (documents(torch.arange(1511) // 100), 0.3),
        (lengths([200]), 0.3),
        (prefix(40) | window(before=40, after=0), 0.3),
    ],
)


@HIDING
def test_what_is_hidden_is_not_worked_out(mask, share):
    inputs = [torch.randn(1, 2, 1511, 4, requires_grad=True) for _ in range(3)]

    def operations(mask):
        with FlopCounterMode(display=False) as counter:
            attend(*inputs, mask=mask, backend="tiled").sum().backward()
        return counter.get_total_flops()

    assert operations(mask) < share * operations(None)
