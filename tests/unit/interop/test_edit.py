"""A model's attention is changed: heads muted, links hidden, rows fixed, and nothing else."""

import pytest
import torch
from tests.unit.interop.tiny_models import llama
from torch import nn
from torch.testing import assert_close

import regard as rg
from regard.attention import observing
from regard.errors import SettingError, ShapeError

B, H, N, M, D = 2, 3, 5, 7, 4


class Plain(nn.Module):
    """One attention of queries over keys, whose place is given."""

    def __init__(self, kind="cross", layer=0):
        super().__init__()
        self.place = (kind, layer)

    def forward(self, query, key, value=None, **options):
        with rg.at(*self.place):
            return rg.attend(query, key, value, **options)


def states(*heads):
    return torch.randn(B, *heads, N, D), torch.randn(B, *heads, M, D), torch.randn(B, *heads, M, D)


@pytest.fixture
def model():
    return Plain()


def edited(model, inputs, change, **options):
    with rg.edit(model) as edits:
        change(edits)
        return edits.compare(lambda: model(*inputs, **options))


def test_a_muted_head_gives_zeros_and_the_others_what_they_gave(model):
    before, after = edited(model, states(H), lambda edits: edits.mute(0, 1))
    assert after[:, 1].eq(0).all()
    assert torch.equal(after[:, [0, 2]], before[:, [0, 2]])


def test_a_scaled_head_gives_so_many_times_what_it_gave(model):
    before, after = edited(model, states(H), lambda edits: edits.scale(1.5, 0, [0, 2]))
    assert torch.equal(after[:, [0, 2]], before[:, [0, 2]] * 1.5)
    assert torch.equal(after[:, 1], before[:, 1])
    with pytest.raises(SettingError, match="factor must be a finite number; got inf"):
        edited(model, states(H), lambda edits: edits.scale(float("inf"), 0))


def test_a_hidden_link_gives_its_weight_to_the_others(model):
    query, key, value = states(H)
    _, after = edited(
        model, (query, key, value), lambda edits: edits.hide(2, range(1, 4), head=[0, 2])
    )
    mask = torch.ones(H, N, M, dtype=torch.bool)
    mask[[0, 2], 2, 1:4] = False
    assert_close(after, rg.attend(query, key, value, mask=mask))


def test_what_a_mask_hides_stays_hidden(model):
    query, key, value = states(H)
    mask = rg.causal()
    _, after = edited(model, (query, key, value), lambda edits: edits.hide(None, 0), mask=mask)
    assert_close(
        after, rg.attend(query, key, value, mask=mask & rg.where(lambda b, h, q, k: k > 0))
    )


@pytest.mark.parametrize("groups", [1, 3, 6])
def test_a_fixed_row_mixes_the_values_of_its_head(groups):
    query, key = torch.randn(B, 6, N, D), torch.randn(B, groups, M, D)
    value, row = torch.randn(B, groups, M, D), torch.tensor([0.0, 0.5, 0.25, 0.25])
    before, after = edited(
        Plain(), (query, key, value), lambda edits: edits.fix([1, 3], row, layer=0, head=4)
    )
    want = before.clone()
    want[:, 4, [1, 3]] = (row[:, None] * value[:, 4 * groups // 6, :4]).sum(1)[:, None]
    assert_close(after, want)


def test_a_row_for_each_text_and_gradients_through_what_is_left(model):
    query, key, value = (tensor.requires_grad_() for tensor in states(H))
    rows = torch.softmax(torch.randn(B, M), -1)
    _, after = edited(
        model, (query, key, value), lambda edits: edits.fix(None, rows, layer=0, head=range(H))
    )
    assert_close(after, torch.einsum("bm,bhme->bhe", rows, value)[:, :, None].expand(B, H, N, D))
    after.sum().backward()
    assert query.grad is None or query.grad.eq(0).all()
    assert value.grad.ne(0).all()


def test_attention_without_heads_is_edited_as_one(model):
    query, key, value = states()
    row = torch.eye(M)[3]
    _, after = edited(model, (query, key, value), lambda edits: edits.fix(0, row, layer=0, head=0))
    assert_close(after[:, 0], value[:, 3])


def test_only_the_layer_and_kind_that_are_named_change():
    layers = nn.ModuleList([Plain("encoder", 0), Plain("cross", 0), Plain("cross", 1)])
    inputs = states(H)

    class All(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = layers

        def forward(self, *inputs):
            return [layer(*inputs) for layer in self.layers]

    before, after = edited(All(), inputs, lambda edits: edits.mute(0, kind="cross"))
    changed = [not torch.equal(*pair) for pair in zip(before, after, strict=True)]
    assert changed == [False, True, False]


def test_a_watched_model_has_the_edited_weights(model):
    with rg.edit(model) as edits, rg.watch(model) as watched:
        edits.hide(None, slice(2))
        model(*states(H))
    received = watched.summary(0).received
    assert received[..., :2].eq(0).all()
    assert_close(received.sum(-1), torch.full((B, H), float(N)))


def test_edits_within_edits_add_up(model):
    inputs = states(H)
    with rg.edit(model) as outer, rg.edit(model) as inner:
        outer.mute(0, 0)
        outer.hide(None, 0)
        inner.mute(0, 2)
        inner.hide(None, 1)
        after = model(*inputs)
    assert after[:, [0, 2]].eq(0).all()
    expected = rg.attend(*inputs, mask=rg.where(lambda b, h, q, k: k > 1))
    assert_close(after[:, 1], expected[:, 1])


def test_positions_count_through_the_steps_of_a_generation():
    # In float64: what is left of rounding in float32 depends on the processor.
    model, ids = (
        llama(num_hidden_layers=2, initializer_range=0.5).double(),
        torch.randint(3, 23, (1, 4)),
    )
    row = torch.eye(9, dtype=torch.float64)[1]

    def change(edits):
        edits.hide(slice(5, None), slice(2))
        edits.mute(0, 3)
        edits.fix([6, 7], row, layer=1, head=2)

    with rg.edit(model) as edits, rg.watch(model) as watched:
        change(edits)
        out = model.generate(
            ids,
            max_new_tokens=6,
            do_sample=False,
            pad_token_id=0,
            output_logits=True,
            return_dict_in_generate=True,
        )
        stepwise = torch.stack(out.logits, dim=1)
        expected = model(out.sequences[:, :-1]).logits[:, 3:]
    assert_close(stepwise, expected.float())  # which is how `generate` gives them
    assert watched.summary(0, call=0).pooled[0, :, 5:, :2].eq(0).all()
    assert not torch.allclose(model(out.sequences[:, :-1]).logits[:, 3:], expected)
    assert model.config._attn_implementation == "sdpa"


def test_nothing_is_left_of_it_after_the_block(model):
    inputs = states(H)
    before = model(*inputs)

    def fail():
        with rg.edit(model) as edits:
            edits.mute(0)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert torch.equal(model(*inputs), before)
    assert observing.current_editor() is None
    assert not observing.is_edited()


@pytest.mark.usefixtures("as_users_have_it")
def test_a_compiled_function_is_edited_too():
    inputs = states(H)

    @torch.compile(backend="eager")
    def run(*inputs):
        return rg.attend(*inputs) * 1

    before = run(*inputs)
    with observing.editing(lambda call_: observing.Edit(call_.mask, lambda out, value: out * 2)):
        assert torch.equal(run(*inputs), before * 2)
    assert torch.equal(run(*inputs), before)


def test_what_is_not_there_is_an_error(model):
    inputs = states(H)
    with pytest.raises(SettingError, match="layer must be one that attended: cross 0; got layer=3"):
        edited(model, inputs, lambda edits: edits.mute(3))
    with pytest.raises(SettingError, match=r"head must be below 3, the heads of .*; got 3"):
        edited(model, inputs, lambda edits: edits.mute(0, 3))
    with pytest.raises(SettingError, match="query must be whole numbers from 0; got -1"):
        edited(model, inputs, lambda edits: edits.hide(-1, 0))
    with pytest.raises(SettingError, match="kind must be one of"):
        edited(model, inputs, lambda edits: edits.mute(0, kind="crosses"))
    with pytest.raises(SettingError, match="weights must be finite numbers from 0"):
        edited(model, inputs, lambda edits: edits.fix(0, [0.5, -0.5], layer=0))
    with pytest.raises(SettingError, match=r"weights must be of keys 0 to 6, .*; got 9 that"):
        edited(model, inputs, lambda edits: edits.fix(0, torch.ones(9), layer=0))
    with pytest.raises(ShapeError, match=r"weights must be \(K,\) or \(B, K\) with B = 2; got"):
        edited(model, inputs, lambda edits: edits.fix(0, torch.ones(3, M), layer=0))
