"""Multi-head attention: heads and their groups, memories, caches, positions, torch's weights."""

import copy
from itertools import pairwise

import pytest
import torch
from torch import nn

import regard as rg
from regard.attention.reference import attend_by_loops
from regard.errors import SettingError, ShapeError
from regard.layers import MultiHeadAttention, RelativePositions, RotaryPositions, ShawPositions
from regard.layers.heads import Packing


def matrices(layer):
    """The weights and biases of queries, keys and values, whichever layers hold them."""
    names = ("query_key_value", "query", "key_value", "key", "value")
    modules = [getattr(layer, name) for name in names if getattr(layer, name, None) is not None]
    H, G, D, E = layer.num_heads, layer.num_key_heads, layer.head_dim, layer.value_head_dim
    sizes = [H * D, G * D, G * E]
    weights = [row for each in modules for row in each.weight]
    biases = [row for each in modules for row in each.bias]
    assert len(weights) == len(biases) == sum(sizes)
    ends = [0, sizes[0], sizes[0] + sizes[1], sum(sizes)]
    return [
        (torch.stack(weights[first:last]), torch.stack(biases[first:last]))
        for first, last in pairwise(ends)
    ]


def by_formula(layer, states, memory, values=None, visible=None):
    """Heads cut out by slices, one after the other, mixed by plain loops."""
    inputs = (states, memory, memory if values is None else values)
    query, key, value = (
        x @ weight.T + bias for x, (weight, bias) in zip(inputs, matrices(layer), strict=True)
    )
    D, E, group = layer.head_dim, layer.value_head_dim, layer.num_heads // layer.num_key_heads
    heads = []
    for h in range(layer.num_heads):
        g = h // group
        mixed = attend_by_loops(
            query[:, None, :, h * D : (h + 1) * D],
            key[:, None, :, g * D : (g + 1) * D],
            value[:, None, :, g * E : (g + 1) * E],
            visible=visible,
        )
        heads.append(mixed.context[:, 0])
    return layer.output(torch.cat(heads, dim=-1))


def shaken(layer):
    """In float64, with biases that are not zero."""
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    return layer.double()


HEADS = {
    "as many": {},
    "grouped": {"num_key_heads": 3},
    "multi-query": {"num_key_heads": 1},
    "widths of their own": {"head_dim": 4, "value_head_dim": 5, "output_dim": 7},
    "grouped, of their own": {"num_key_heads": 2, "head_dim": 3, "value_head_dim": 5},
}


# Options of a layer, and the widths of the states, the memory and, if they differ, the values.
LAYOUTS = {
    "its own states": ({"query_dim": 11}, (11, None, None)),
    "a memory as wide": ({}, (12, 12, 12)),
    "a memory": ({"key_value_dim": 7}, (12, 7, 7)),
    "keys and values": ({"key_dim": 7, "value_dim": 5}, (12, 7, 5)),
    "a width of keys": ({"key_dim": 7}, (12, 7, 7)),
    "a width of values": ({"value_dim": 7}, (12, 7, 7)),
}


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_attention_is_the_paper_formula(heads, layout):
    options, (width, key_dim, value_dim) = LAYOUTS[layout]
    layer = shaken(MultiHeadAttention(12, 6, **HEADS[heads], **options))
    states = torch.randn(2, 5, width).double()
    if key_dim is None:
        out, cache = layer(states, mask=rg.causal())
        visible = torch.ones(5, 5, dtype=torch.bool).tril()
        torch.testing.assert_close(out, by_formula(layer, states, states, visible=visible))
        assert out.shape == (2, 5, HEADS[heads].get("output_dim", 12))
        assert cache.length == 5
        return
    memory, values = (torch.randn(2, 4, each).double() for each in (key_dim, value_dim))
    want = by_formula(layer, states, memory, values)
    torch.testing.assert_close(layer(states, memory, values)[0], want)
    if key_dim == value_dim:
        torch.testing.assert_close(layer(states, memory)[0], by_formula(layer, states, memory))


def test_gradients_can_be_differentiated():
    layer = shaken(MultiHeadAttention(4, 2, num_key_heads=1))
    states = torch.randn(1, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda t: layer(t)[0], states, atol=1e-6)


@pytest.mark.parametrize("options", [{"key_value_dim": 7}, {"key_dim": 7, "value_dim": 7}])
def test_a_memory_projected_once_gives_the_same(options):
    layer = MultiHeadAttention(12, 6, num_key_heads=3, **options).eval()
    states, memory = torch.randn(2, 5, 12), torch.randn(2, 4, 7)
    projected = layer.project_memory(memory)
    assert projected.key.shape == (2, 3, 4, 2)
    mask = rg.lengths([2, 4])
    assert torch.equal(layer(states, projected, mask=mask)[0], layer(states, memory, mask=mask)[0])


@pytest.mark.parametrize("heads", HEADS)
def test_packed_states_give_what_padded_ones_do(heads):
    counts = torch.tensor([3, 5, 1])
    packing = Packing(counts, 5)
    states, mask = torch.randn(3, 5, 12), rg.lengths(counts)
    layer = MultiHeadAttention(12, 6, **HEADS[heads])
    packed, _ = layer(packing.pack(states), mask=mask, packing=packing)
    torch.testing.assert_close(packed, packing.pack(layer(states, mask=mask)[0]))
    over = MultiHeadAttention(12, 6, key_value_dim=12, **HEADS[heads])
    projected = over.project_memory(packing.pack(states), packing=packing)
    torch.testing.assert_close(
        over(states, projected, mask=mask)[0], over(states, states, mask=mask)[0]
    )


def test_all_projections_start_with_the_spread_of_one_xavier_matrix():
    torch.manual_seed(0)
    layers = [
        MultiHeadAttention(256, 4),
        MultiHeadAttention(256, 4, key_value_dim=256),
        MultiHeadAttention(256, 4, key_dim=256),
    ]
    bound = (6 / (4 * 256)) ** 0.5
    for layer in layers:
        for name, child in layer.named_children():
            if name == "output":
                assert child.weight.abs().max() > bound
                continue
            assert child.weight.abs().max() <= bound
            assert child.weight.abs().max() > 0.99 * bound
            assert child.bias.eq(0).all()


def test_weights_have_the_names_that_run_folders_know():
    def names(**options):
        return [name for name, _ in MultiHeadAttention(12, 3, **options).named_parameters()]

    def both(*layers):
        return [f"{layer}.{kind}" for layer in layers for kind in ("weight", "bias")]

    assert names() == both("query_key_value", "output")
    assert names(rotary=RotaryPositions(4)) == both("query_key_value", "output")
    assert names(key_value_dim=7) == both("query", "key_value", "output")
    assert names(key_dim=7, value_dim=5) == both("query", "key", "value", "output")


def test_dropout_is_for_training_only():
    layer, states = MultiHeadAttention(12, 3, dropout=0.5), torch.randn(2, 5, 12)
    assert not torch.equal(layer(states)[0], layer(states)[0])
    layer.eval()
    assert torch.equal(layer(states)[0], layer(states)[0])


def test_a_dropped_head_says_nothing_to_a_query_and_the_others_make_up_for_it():
    torch.manual_seed(0)
    layer = MultiHeadAttention(12, 3, head_dropout=0.5)
    layer.output = torch.nn.Identity()
    layer.output.weight = torch.nn.Parameter(torch.eye(12))
    states = torch.randn(2, 50, 12)
    whole = layer.eval()(states)[0].unflatten(-1, (3, 4))
    got = layer.train()(states)[0].unflatten(-1, (3, 4))
    is_dropped = got.eq(0).all(-1)
    torch.testing.assert_close(got, 2 * whole * ~is_dropped[..., None])
    assert 0.35 < is_dropped.float().mean() < 0.65
    assert is_dropped.any(1).all()
    assert not is_dropped.all(1).any()


@pytest.mark.parametrize(
    "score", [rg.Gaussian(2.0), rg.Cosine(torch.tensor([[0.5], [1.0], [2.0]]))]
)
def test_any_score_may_match_the_heads_with_any_bias(score):
    layer = MultiHeadAttention(12, 3, score=score).double()
    states = torch.randn(2, 5, 12).double()
    q, k, v = (
        t.unflatten(-1, (3, 4)).transpose(1, 2) for t in layer.query_key_value(states).chunk(3, -1)
    )
    mixed = rg.attend(q, k, v, score=score, bias=rg.alibi(), mask=rg.causal(), backend="tiled")
    want = layer.output(mixed.transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(states, bias=rg.alibi(), mask=rg.causal())[0], want)


def test_parameters_of_a_score_are_trained_saved_and_copied_with_the_layer():
    temperature = nn.Parameter(torch.tensor([[0.5], [1.0], [2.0]]))
    layer = MultiHeadAttention(12, 3, score=rg.Cosine(temperature))
    assert any(parameter is temperature for parameter in layer.parameters())
    states = torch.randn(2, 5, 12)
    layer(states)[0].square().sum().backward()
    assert temperature.grad.ne(0).all()
    twin = MultiHeadAttention(12, 3, score=rg.Cosine(nn.Parameter(torch.ones(3, 1))))
    twin.load_state_dict(layer.state_dict())
    copied = copy.deepcopy(layer)
    assert torch.equal(twin(states)[0], layer(states)[0])
    temperature.data *= 2
    changed = layer(states)[0]
    assert not torch.equal(changed, copied(states)[0])
    assert torch.equal(twin(states)[0], copied(states)[0])
    assert MultiHeadAttention(12, 3, score=rg.Additive(torch.ones(4))).state_dict().keys() == (
        MultiHeadAttention(12, 3).state_dict().keys()
    )


POSITIONS = {
    "none": lambda: None,
    "alibi": rg.alibi,
    "relative": RelativePositions(6, num_buckets=8, max_distance=6, is_bidirectional=False),
    "shaw": ShawPositions(4, max_distance=2, value_head_dim=5),
}


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("pairs", [None, "interleaved", "halves"])
@pytest.mark.parametrize("num_key_heads", [6, 2, 1])
def test_cached_decoding_equals_full_decoding(num_key_heads, pairs, positions):
    rotary = None if pairs is None else RotaryPositions(4, pairs=pairs, max_length=4)
    options = {"num_key_heads": num_key_heads, "head_dim": 4, "value_head_dim": 5}
    layer = MultiHeadAttention(12, 6, rotary=rotary, **options).double()
    rule = POSITIONS[positions]
    if isinstance(rule, nn.Module):
        rule = copy.deepcopy(rule).double()
        for parameter in rule.parameters():
            nn.init.normal_(parameter)
    states = torch.randn(2, 9, 12).double()
    whole, _ = layer(states, mask=rg.causal(), bias=rule())
    cache, parts = layer.empty_cache(2), []
    for step in states.split([3, 1, 1, 4], dim=1):
        part, cache = layer(step, mask=rg.causal(), bias=rule(), cache=cache)
        parts.append(part)
    assert cache.length == 9
    assert cache.key.shape == (2, num_key_heads, 9, 4)
    assert cache.value.shape == (2, num_key_heads, 9, 5)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)


def test_rotary_positions_turn_queries_and_keys_and_not_values():
    rotary = RotaryPositions(4)
    layer = MultiHeadAttention(12, 3, num_key_heads=1, rotary=rotary).double()
    states = torch.randn(2, 5, 12).double()
    query, key, value = layer.query_key_value(states).split([12, 4, 4], -1)
    query = rotary(query.unflatten(-1, (3, 4)).transpose(1, 2))
    mixed = rg.attend(query, rotary(key[:, None]), value[:, None])
    want = layer.output(mixed.transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(states)[0], want)


@pytest.mark.parametrize("positions", [rg.alibi(), None])
def test_half_precision_layers_work_on_a_cpu(positions):
    layer = MultiHeadAttention(12, 3, num_key_heads=1, rotary=RotaryPositions(4))
    states = torch.randn(2, 5, 12)
    want = layer(states, bias=positions, mask=rg.causal())[0]
    for dtype in (torch.bfloat16, torch.float16):
        narrow = copy.deepcopy(layer).to(dtype)
        inputs = states.to(dtype).requires_grad_()
        out, cache = narrow(inputs, bias=positions, mask=rg.causal(), cache=narrow.empty_cache(2))
        assert out.dtype == dtype
        torch.testing.assert_close(out.float(), want, atol=0.05, rtol=0)
        out, _ = narrow(inputs[:, :1], cache=cache)
        out.sum().backward()
        assert inputs.grad.isfinite().all()
    with torch.autocast("cpu", torch.bfloat16):
        out = layer(states, bias=positions, mask=rg.causal())[0]
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), want, atol=0.05, rtol=0)


def test_no_positions_and_no_rows_are_fine():
    layer = MultiHeadAttention(12, 6, num_key_heads=2)
    assert layer(torch.zeros(0, 5, 12))[0].shape == (0, 5, 12)
    assert layer(torch.zeros(2, 0, 12))[0].shape == (2, 0, 12)
    nothing = layer(torch.randn(2, 5, 12), torch.zeros(2, 0, 12))[0]
    torch.testing.assert_close(nothing, layer.output.bias.expand(2, 5, 12))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_dim": 10}, "model_dim must be divisible by num_heads; got model_dim=10, num_h"),
        (
            {"num_key_heads": 4},
            "num_heads must be divisible by num_key_heads; got num_heads=6, num_key_heads=4",
        ),
        ({"num_key_heads": 0}, "num_key_heads must be at least 1; got 0"),
        ({"key_dim": -1}, "key_dim must be at least 1; got -1"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1; got 1.0"),
        (
            {"key_value_dim": 7, "key_dim": 5},
            "key_value_dim must be left out where key_dim or value_dim is given; "
            "got key_value_dim=7, key_dim=5, value_dim=None",
        ),
        (
            {"rotary": RotaryPositions(4)},
            r"rotary must be for heads of width head_dim=2; got RotaryPositions\(4, ",
        ),
        (
            {"rotary": RotaryPositions(2), "key_value_dim": 7},
            "rotary must be left out of a layer over a memory",
        ),
        ({"score": rg.Dot}, r"score must be a Score such as ScaledDot\(\); got <class"),
    ],
)
def test_settings_that_do_not_fit_are_named(options, message, unchecked_shapes):
    with pytest.raises(SettingError, match=message):
        MultiHeadAttention(**({"model_dim": 12, "num_heads": 6} | options))


SELF, OVER = MultiHeadAttention(12, 3), MultiHeadAttention(12, 3, key_value_dim=7)
APART = MultiHeadAttention(12, 3, key_dim=7, value_dim=5)
TURNED = MultiHeadAttention(12, 3, rotary=RotaryPositions(4))
STATES, MEMORY = torch.zeros(1, 2, 12), torch.zeros(1, 4, 7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: OVER(STATES), "memory must be given to a layer made with key_value_dim, key_dim"),
        (
            lambda: OVER(STATES, MEMORY, cache=OVER.empty_cache(1)),
            "cache must be left out where there is a memory; got both",
        ),
        (lambda: TURNED(STATES, STATES), "memory must be left out where there is rotary"),
        (lambda: SELF(STATES, None, STATES), "values must come with a memory .*; got NoneType"),
        (
            lambda: OVER(STATES, OVER.project_memory(MEMORY), MEMORY),
            "values must come with a memory that is not projected yet; got KeyValueCache",
        ),
    ],
)
def test_calls_that_do_not_fit_the_layer_are_named(call, message):
    with pytest.raises(SettingError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SELF(STATES[0]), r"states must have shape \(B, N, 12\); got \(2, 12\)"),
        (lambda: SELF(MEMORY), r"states must have shape \(B, N, 12\); got \(1, 4, 7\)"),
        (
            lambda: SELF(STATES, packing=Packing(torch.tensor([1]), 2)),
            r"states must have shape \(R, 12\) with a packing; got \(1, 2, 12\)",
        ),
        (lambda: OVER(STATES, STATES), r"memory must have shape \(B, N, 7\); got \(1, 2, 12\)"),
        (lambda: APART(STATES, MEMORY), r"memory must have shape \(B, N, 5\); got \(1, 4, 7\)"),
        (
            lambda: APART(STATES, MEMORY, MEMORY),
            r"values must have shape \(B, N, 5\); got \(1, 4, 7\)",
        ),
        (
            lambda: OVER(STATES, MEMORY, MEMORY[:, :3]),
            r"values must have the positions of the memory, \(1, 4\); got \(1, 3\)",
        ),
        (
            lambda: SELF(STATES, rg.KeyValueCache(*[torch.zeros(1, 2, 4, 4)] * 2)),
            "query heads must be a multiple of key heads; got H=3, G=2",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_named(call, message, unchecked_shapes):
    with pytest.raises(ShapeError, match=message):
        call()


@pytest.mark.parametrize(
    ("width", "bias", "layout"),
    [
        *((12, bias, layout) for bias in (True, False) for layout in ((), ("key_value_dim",))),
        *((12, bias, ("key_dim", "value_dim")) for bias in (True, False)),
        *((7, True, layout) for layout in (("key_value_dim",), ("key_dim", "value_dim"))),
    ],
)
def test_torchs_matrices_go_into_every_layout(width, bias, layout):
    peer = nn.MultiheadAttention(12, 3, batch_first=True, bias=bias, kdim=width, vdim=width)
    peer = shaken(peer)
    layer = MultiHeadAttention(12, 3, bias=bias, **dict.fromkeys(layout, width)).double()
    layer.load_state_dict(peer.state_dict())
    states, memory = torch.randn(2, 5, 12).double(), torch.randn(2, 4, width).double()
    torch.testing.assert_close(layer(states, memory)[0], peer(states, memory, memory)[0])


def test_torchs_weights_are_found_inside_a_model_and_leave_the_state_dict_alone():
    def model(make):
        return nn.ModuleDict({"norm": nn.LayerNorm(12), "attend": make(12, 3)})

    theirs, ours = model(nn.MultiheadAttention), model(MultiHeadAttention)
    state = theirs.state_dict()
    names = list(state)
    assert ours.load_state_dict(state).missing_keys == []
    assert list(state) == names
    assert torch.equal(ours["attend"].query_key_value.weight, state["attend.in_proj_weight"])
    own = ours.state_dict()
    ours.load_state_dict(own)
    copy.deepcopy(ours).load_state_dict(state)


def test_weights_that_are_missing_or_not_wanted_are_named():
    state = nn.MultiheadAttention(12, 3).state_dict()
    with pytest.raises(RuntimeError, match=r"Unexpected key.*query_key_value\.bias"):
        MultiHeadAttention(12, 3, bias=False).load_state_dict(state)
    with pytest.raises(RuntimeError, match=r"size mismatch for query_key_value\.weight"):
        MultiHeadAttention(6, 3).load_state_dict(state)
    del state["in_proj_bias"]
    with pytest.raises(RuntimeError, match=r"Missing key.*query_key_value\.bias"):
        MultiHeadAttention(12, 3).load_state_dict(state)
    assert MultiHeadAttention(12, 3).load_state_dict(state, strict=False).missing_keys == [
        "query_key_value.bias"
    ]


@pytest.mark.parametrize(
    ("options", "peer", "message"),
    [
        ({}, {"add_bias_kv": True}, "state_dict must hold .*; got bias_k and bias_v"),
        (
            {"num_key_heads": 1},
            {},
            "num_key_heads must be num_heads to take the weights of .*; got 1, 3",
        ),
        (
            {"key_value_dim": 7},
            {"kdim": 7, "vdim": 5},
            r"key_value must get matrices of one width to join; got widths \[7, 5\]",
        ),
    ],
)
def test_torchs_weights_that_do_not_fit_are_named(options, peer, message):
    layer = MultiHeadAttention(12, 3, **options)
    before = copy.deepcopy(layer.state_dict())
    with pytest.raises(SettingError, match=message):
        layer.load_state_dict(nn.MultiheadAttention(12, 3, **peer).state_dict())
    for name, tensor in layer.state_dict().items():
        assert torch.equal(tensor, before[name])


@pytest.mark.parametrize(
    ("options", "name"), [({"add_bias_kv": True}, "bias_k"), ({"add_zero_attn": True}, "add_zero")]
)
def test_what_no_layer_of_ours_can_be_made_from_is_refused(options, name):
    with pytest.raises(SettingError, match=f"peer must look at its inputs .* one with {name}"):
        MultiHeadAttention.from_torch(nn.MultiheadAttention(12, 3, **options))


@pytest.mark.usefixtures("unchecked_shapes")
def test_options_and_arrays_of_elsewhere_are_answered():
    with pytest.raises(SettingError, match="batch_first is not an option of MultiHeadAttention"):
        MultiHeadAttention(12, 6, batch_first=True)
    layer = MultiHeadAttention(12, 6)
    with pytest.raises(
        SettingError, match=r"need_weights is .*MultiHeadAttention\. Use regard\.we"
    ):
        layer(STATES, need_weights=True)
    with pytest.raises(ShapeError, match=r"got ndarray\. Use torch\.as_tensor\(states\)"):
        layer(torch.zeros(1, 2, 12).numpy())
