"""The cases that torch tests its own attention with, here with torch as the oracle.

What its suites for ``scaled_dot_product_attention`` and ``nn.MultiheadAttention`` look at: lengths
that fit no block, every way a mask may broadcast, halves, causal rectangles, unbatched and empty
inputs, keys that are added, arguments that do not fit. Three things of ours stand in for torch's:
``attend``, ``MultiHeadAttention``, and ``EngineAttention``, which ``use`` puts into a model.
"""

import copy
import itertools

import pytest
import torch
from tests.cases import pairwise
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from regard import use
from regard.attention import ScaledDot, attend, causal, dense
from regard.errors import ShapeError
from regard.layers import MultiHeadAttention

pytestmark = pytest.mark.parity

# What torch's suite allows its fused kernels against the formula in float32.
TOLERANCE = {
    torch.float64: {"atol": 1e-9, "rtol": 1e-7},
    torch.float32: {"atol": 1e-5, "rtol": 5e-6},
    torch.bfloat16: {"atol": 5e-2, "rtol": 5e-2},
    torch.float16: {"atol": 1e-2, "rtol": 1e-2},
}
DTYPES = list(TOLERANCE)


def formula(query, key, value, **options):
    """Torch's formula, in float32 at least, as its suite has it."""
    wide = torch.promote_types(query.dtype, torch.float32)
    mask = options.pop("attn_mask", None)
    if mask is not None and mask.is_floating_point():
        mask = mask.to(wide)
    with sdpa_kernel(SDPBackend.MATH):
        out = F.scaled_dot_product_attention(
            query.to(wide), key.to(wide), value.to(wide), attn_mask=mask, **options
        )
    return out.to(query.dtype)


def assert_same(ours, theirs, inputs, dtype):
    torch.testing.assert_close(ours, theirs, **TOLERANCE[dtype])
    differentiated = [tensor for tensor in inputs if tensor is not None and tensor.requires_grad]
    if not differentiated:
        return
    grad = torch.randn_like(ours)
    torch.testing.assert_close(
        torch.autograd.grad(ours, differentiated, grad),
        torch.autograd.grad(theirs, differentiated, grad),
        **TOLERANCE[dtype],
    )


def cut_from_one(B, H, N, D, dtype, trains=True):
    """Queries, keys and values as views of one projection, as models have them."""
    joint = torch.randn(B, N, 3 * H * D).to(dtype).requires_grad_(trains)
    return joint, [t.view(B, N, H, D).transpose(1, 2) for t in joint.chunk(3, dim=-1)]


# scaled_dot_product_attention


@pairwise(
    dtype=DTYPES,
    batch=[(12, 67), (2, 267), (1, 1030)],
    heads=[(1, 8), (3, 16)],
    is_causal=[True, False],
    trains=[True, False],
)
def test_fused_attention_is_the_formula(dtype, batch, heads, is_causal, trains):
    (B, N), (H, D) = batch, heads
    joint, inputs = cut_from_one(B, H, N, D, dtype, trains)
    out = attend(*inputs, mask=causal() if is_causal else None)
    assert_same(out, formula(*inputs, is_causal=is_causal), [joint], dtype)


MASK_SHAPES = [
    *itertools.product([67, 1], [130, 1]),
    *itertools.product([3], [67, 1], [130, 1]),
    *itertools.product([2, 1], [3, 1], [67, 1], [130, 1]),
    (130,),
    (1,),
    (),
]


@pairwise(shape=MASK_SHAPES, is_bool=[True, False], backend=[None, "tiled"])
def test_a_mask_may_broadcast_in_every_way(shape, is_bool, backend):
    query, key, value = (torch.randn(2, 3, n, 8).requires_grad_() for n in (67, 130, 130))
    mask = torch.rand(shape) > 0.4 if is_bool else torch.randn(shape)
    options = {"mask": mask} if is_bool else {"bias": mask}
    out = attend(query, key, value, **options, backend=backend)
    # Torch's formula takes a mask of two axes at least.
    expected = formula(
        query, key, value, attn_mask=mask.expand(torch.broadcast_shapes(shape, (1, 1)))
    )
    assert_same(out, expected, [query, key, value], torch.float32)


def test_a_float_mask_of_infinities_is_a_bias():
    # pytorch#127055: a band, hidden by minus infinity on both sides.
    full = torch.full((600, 600), float("-inf"))
    mask = full.triu(1) + full.tril(-10)
    query, key, value = (torch.randn(1, 2, 600, 8) for _ in range(3))
    want = formula(query, key, value, attn_mask=mask)
    torch.testing.assert_close(attend(query, key, value, bias=mask), want)
    torch.testing.assert_close(attend(query, key, value, mask=mask == 0), want)


@pytest.mark.parametrize("backend", ["sdpa", "dot_cpu", "tiled"])
def test_a_negative_scale(backend):
    # pytorch#105190
    x = torch.randn(1, 3, 64, 64)
    out = attend(x, x, x, score=ScaledDot(scale=-1e4), backend=backend)
    want = formula(*(x.double(),) * 3, scale=-1e4)
    torch.testing.assert_close(out.double(), want, atol=1e-4, rtol=0)


@pytest.mark.parametrize(("N", "M"), [(1, 7), (7, 1), (8, 12), (12, 8), (67, 130), (130, 67)])
@pytest.mark.parametrize("backend", [None, "dot_cpu", "tiled"])
def test_causal_rectangles_in_both_corners(backend, N, M):
    from torch.nn.attention.bias import causal_lower_right, causal_upper_left  # loads its compiler

    query, key, value = (torch.randn(2, 3, n, 8).requires_grad_() for n in (N, M, M))
    out = attend(query, key, value, mask=causal(first=0), backend=backend)
    whole = causal_upper_left(N, M)._materialize()
    assert_same(
        out, formula(query, key, value, attn_mask=whole), [query, key, value], torch.float32
    )
    torch.testing.assert_close(out, formula(query, key, value, is_causal=True), atol=1e-5, rtol=0)
    out = attend(query, key, value, mask=causal(), backend=backend)
    whole = torch.ones(N, M, dtype=torch.bool).tril(M - N)
    if N <= M:
        assert torch.equal(causal_lower_right(N, M)._materialize(), whole)
    assert_same(
        out, formula(query, key, value, attn_mask=whole), [query, key, value], torch.float32
    )


# nn.MultiheadAttention

C, H = 12, 3
LAYERS = {
    "plain": {},
    "no biases": {"bias": False},
    "kdim and vdim": {"kdim": 6, "vdim": 10},
    "kdim as vdim": {"kdim": 7, "vdim": 7},
    "vdim": {"vdim": 5},
}
ADDED = {
    "bias_kv": {"add_bias_kv": True},
    "zero attn": {"add_zero_attn": True},
    "bias_kv and zero attn": {"add_bias_kv": True, "add_zero_attn": True},
    "bias_kv with widths": {"add_bias_kv": True, "kdim": 6, "vdim": 10},
}


def torchs(dtype=torch.float64, **options):
    peer = nn.MultiheadAttention(C, H, **options)
    for name, parameter in peer.named_parameters():
        if "bias" in name:
            nn.init.normal_(parameter)
    return peer.to(dtype)


def on_the_engine(peer):
    """A copy of it, computed by ours."""
    return use(nn.ModuleList([copy.deepcopy(peer)]))[0]


def states_for(peer, B=2, N=5, M=4, dtype=torch.float64, requires_grad=False):
    """Batch-first queries, keys and values."""
    widths = (C, peer.kdim, peer.vdim)
    return [
        torch.randn(B, n, w).to(dtype).requires_grad_(requires_grad)
        for n, w in zip((N, M, M), widths, strict=True)
    ]


def hidden_masks(B=2, N=5, M=4):
    """Torch's masks, True where a query may not look; no row is hidden altogether."""
    attn = torch.rand(N, M) < 0.5
    attn[:, 0] = False
    each = torch.rand(B * H, N, M) < 0.5
    each[..., 0] = False
    padding = torch.arange(M) >= torch.tensor([M - 1, max(1, M - 2)])[:B, None]
    return attn, each, padding


def as_floats(hidden, dtype=torch.float64):
    """Torch's other way to hide: minus infinity, and something else to add."""
    return torch.randn(hidden.shape).to(dtype).masked_fill(hidden, float("-inf"))


MASKS = ["none", "attn", "attn per head", "padding", "attn and padding", "per head and padding"]


def chosen_masks(name, is_bool, **sizes):
    attn, each, padding = hidden_masks(**sizes)
    masks = {}
    if "attn" in name:
        masks["attn_mask"] = each if "per head" in name else attn
    if "per head and" in name:
        masks["attn_mask"] = each
    if "padding" in name:
        masks["key_padding_mask"] = padding
    return masks if is_bool else {key: as_floats(mask) for key, mask in masks.items()}


def as_ours(masks, B=2):
    visible, bias = None, None
    for name, mask in masks.items():
        if name == "key_padding_mask":
            lifted = mask[:, None, None]
        else:
            lifted = mask if mask.dim() == 2 else mask.unflatten(0, (B, H))
        if mask.dtype == torch.bool:
            visible = dense(~lifted) if visible is None else visible & dense(~lifted)
        else:
            bias = lifted if bias is None else bias + lifted
    return {"mask": visible, "bias": bias}


@pairwise(name=LAYERS, masks=MASKS, is_bool=[True, False])
def test_our_layer_gives_torchs_numbers_and_gradients(name, masks, is_bool):
    peer = torchs(batch_first=True, **LAYERS[name])
    in_evaluation = nn.MultiheadAttention(C, H, dropout=0.2, batch_first=True).eval()
    assert MultiHeadAttention.from_torch(in_evaluation).dropout == 0.2
    assert not MultiHeadAttention.from_torch(in_evaluation).training
    layer = MultiHeadAttention.from_torch(peer)
    inputs = states_for(peer, requires_grad=True)
    torch_masks = chosen_masks(masks, is_bool)
    for need_weights in (True, False):
        expected, _ = peer(*inputs, **torch_masks, need_weights=need_weights)
        out, _ = layer(*inputs, **as_ours(torch_masks))
        assert_same(out, expected, inputs, torch.float64)
    theirs = torch.autograd.grad(
        peer(*inputs, **torch_masks)[0].square().sum(), list(peer.parameters())
    )
    ours = torch.autograd.grad(
        layer(*inputs, **as_ours(torch_masks))[0].square().sum(), list(layer.parameters())
    )
    # The gradients under torch's names, brought to ours as weights are.
    holder = MultiHeadAttention.from_torch(peer)
    names = [name for name, _ in peer.named_parameters()]
    holder.load_state_dict(dict(zip(names, theirs, strict=True)))
    for (ours_name, parameter), grad in zip(holder.named_parameters(), ours, strict=True):
        torch.testing.assert_close(grad, parameter.detach(), msg=ours_name)


@pairwise(name=[*LAYERS, *ADDED], masks=MASKS, is_bool=[True, False])
def test_the_engine_in_torchs_module_gives_its_answers_weights_and_gradients(name, masks, is_bool):
    batch_first = is_bool
    peer = torchs(batch_first=batch_first, **(LAYERS | ADDED)[name])
    ours = on_the_engine(peer)
    inputs = states_for(peer)
    if not batch_first:
        inputs = [tensor.transpose(0, 1) for tensor in inputs]
    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    torch_masks = chosen_masks(masks, is_bool)
    for options in ({}, {"average_attn_weights": False}, {"need_weights": False}):
        expected, rows = peer(*inputs, **torch_masks, **options)
        out, ours_rows = ours(*inputs, **torch_masks, **options)
        assert_same(out, expected, inputs, torch.float64)
        assert (rows is None) == (ours_rows is None)
        if rows is not None:
            torch.testing.assert_close(ours_rows, rows)
    grads = [
        torch.autograd.grad(
            module(*inputs, **torch_masks)[0].square().sum(), list(module.parameters())
        )
        for module in (peer, ours)
    ]
    for expected_gradient, gradient in zip(*grads, strict=True):
        torch.testing.assert_close(gradient, expected_gradient)


@pairwise(name=["plain", "vdim", "bias_kv and zero attn"], masks=MASKS, average=[True, False])
def test_inputs_without_a_batch(name, masks, average):
    peer = torchs(**(LAYERS | ADDED)[name])
    inputs = [tensor[0] for tensor in states_for(peer, B=1)]
    torch_masks = chosen_masks(masks, is_bool=True, B=1)
    if "key_padding_mask" in torch_masks:
        torch_masks["key_padding_mask"] = torch_masks["key_padding_mask"][0]
    outputs = [
        module(*inputs, **torch_masks, average_attn_weights=average)
        for module in (peer, on_the_engine(peer))
    ]
    torch.testing.assert_close(outputs[1], outputs[0])


@pytest.mark.parametrize("options", [{}, ADDED["bias_kv"], ADDED["zero attn"]], ids=str)
@pytest.mark.parametrize("is_bool", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
def test_a_causal_hint_with_a_mask_is_the_mask(need_weights, is_bool, options):
    peer = torchs(batch_first=True, **options)
    states, *_ = states_for(peer)
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    mask = future if is_bool else torch.zeros(5, 5).double().masked_fill(future, float("-inf"))
    # Without weights torch hides the added keys too; with them it follows the mask, as we do.
    expected, _ = peer(states, states, states, attn_mask=mask, is_causal=True)
    ours = on_the_engine(peer)
    out, _ = ours(states, states, states, attn_mask=mask, is_causal=True, need_weights=need_weights)
    torch.testing.assert_close(out, expected)
    without_mask, _ = ours(states, states, states, is_causal=True, need_weights=need_weights)
    torch.testing.assert_close(without_mask, expected)
    if not options:
        layer = MultiHeadAttention.from_torch(peer)
        torch.testing.assert_close(layer(states, mask=causal())[0], expected)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_of_layers(dtype, need_weights):
    peer = torchs(dtype, batch_first=True)
    inputs = states_for(peer, 3, 10, 8, dtype)
    expected, rows = copy.deepcopy(peer).double()(*(tensor.double() for tensor in inputs))
    out, ours_rows = on_the_engine(peer)(*inputs, need_weights=need_weights)
    mixed, _ = MultiHeadAttention.from_torch(peer)(*inputs)
    assert out.dtype == mixed.dtype == dtype
    for output in (out, mixed):
        torch.testing.assert_close(output, expected.to(dtype), **TOLERANCE[dtype])
    if need_weights:
        assert ours_rows.dtype == dtype
        torch.testing.assert_close(ours_rows, rows.to(dtype), **TOLERANCE[dtype])


def test_automatic_precision():
    peer = torchs(torch.float32, batch_first=True)
    inputs = states_for(peer, 3, 10, 8, torch.float32, requires_grad=True)
    layers = (peer, on_the_engine(peer), MultiHeadAttention.from_torch(peer))
    want = torch.autograd.grad(peer(*inputs)[0].square().sum(), inputs)
    for layer in layers:
        with torch.autocast("cpu", torch.bfloat16):
            out = layer(*inputs)[0]
        assert out.dtype == torch.bfloat16
        for grad, whole in zip(
            torch.autograd.grad(out.float().square().sum(), inputs), want, strict=True
        ):
            assert (grad - whole).norm() < 0.03 * whole.norm()


def test_an_encoder_layer_with_a_hook_calls_the_attention_in_it():
    encoder = nn.TransformerEncoderLayer(C, H, C, batch_first=True).double().eval()
    states = torch.rand(2, 4, C).double()
    mask = torch.zeros(4, 4, dtype=torch.bool)
    with torch.inference_mode():
        want = encoder(states, src_mask=mask)
    calls = []
    use(encoder).self_attn.register_forward_hook(lambda *call: calls.append(call))
    with torch.inference_mode():
        torch.testing.assert_close(encoder(states, src_mask=mask), want)
    assert len(calls) == 1


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")  # torch's own
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_inputs_are_refused(layout):
    peer = on_the_engine(torchs(batch_first=True))
    nested = torch.nested.nested_tensor([torch.randn(n, C).double() for n in (3, 5)], layout=layout)
    with pytest.raises(ShapeError, match="query must be padded; got a nested tensor"):
        peer(nested, nested, nested)


HIDDEN = torch.tensor([[False, False, True, True]] * 2)
BAD_CALLS = [
    # query, key, value, masks, and what is said; inputs are (N, B, C) or (N, C)
    (lambda q, k, v: (q, k[:, 0], v, {}), r"one batch.*; got \(5, 2, 12\), \(4, 12\) and"),
    (lambda q, k, v: (q[:, 0], k, v[:, 0], {}), r"one batch.*; got \(5, 12\), \(4, 2, 12\)"),
    (lambda q, k, v: (q, k, v[:3], {}), r"as many positions; .* and \(3, 2, 12\)"),
    (lambda q, k, v: (q, k[:, :1], v[:, :1], {}), r"one batch.*\(4, 1, 12\) and \(4, 1, 12\)"),
    (lambda q, k, v: (q[0, 0], k, v, {}), r"query must have shape .* or \(N, 12\); got \(12,\)"),
    (lambda q, k, v: (q[..., :9], k, v, {}), r"query must have shape \(N, B, 12\) .*2, 9\)"),
    (lambda q, k, v: (q, k[..., :9], v[..., :9], {}), r"key must have shape .*\(4, 2, 9\)"),
    *(
        (
            lambda q, k, v, mask=mask: (q, k, v, {"key_padding_mask": mask}),
            f"key_padding_mask {rule}",
        )
        for mask, rule in (
            (HIDDEN.T, r"must have shape \(2, 4\); got \(4, 2\)"),
            (HIDDEN.to(torch.uint8), r"must be boolean, or floats to add; got torch\.uint8"),
        )
    ),
    (
        lambda q, k, v: (q[:, 0], k[:, 0], v[:, 0], {"key_padding_mask": HIDDEN[:1]}),
        r"key_padding_mask must have shape \(4,\); got \(1, 4\)",
    ),
    *(
        (lambda q, k, v, mask=mask: (q, k, v, {"attn_mask": mask}), f"attn_mask {rule}")
        for mask, rule in (
            (
                HIDDEN[:1].expand(5, 4).long(),
                r"must be boolean, or floats to add; got torch\.int64",
            ),
            (HIDDEN[0], r"must have shape \(5, 4\) or \(6, 5, 4\); got \(4,\)"),
            (HIDDEN[:1].expand(2, 5, 4), r"must have shape .*; got \(2, 5, 4\)"),
            (HIDDEN[:1].expand(2, 3, 5, 4), r"must have shape .*; got \(2, 3, 5, 4\)"),
        )
    ),
    (
        lambda q, k, v: (q[:, 0], k[:, 0], v[:, 0], {"attn_mask": HIDDEN[:1].expand(5, 5, 4)}),
        r"attn_mask must have shape \(5, 4\) or \(3, 5, 4\); got \(5, 5, 4\)",
    ),
]


@pytest.mark.parametrize(("change", "message"), BAD_CALLS)
def test_arguments_that_torchs_module_refuses_are_refused(change, message):
    peer = torchs().eval()
    inputs = [tensor.transpose(0, 1) for tensor in states_for(peer)]
    query, key, value, masks = change(*inputs)
    for need_weights in (True, False):
        with pytest.raises((AssertionError, RuntimeError)):
            peer(query, key, value, **masks, need_weights=need_weights)
        with pytest.raises(ShapeError, match=message):
            on_the_engine(peer)(query, key, value, **masks, need_weights=need_weights)
