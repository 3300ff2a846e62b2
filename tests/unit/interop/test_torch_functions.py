"""Attention that one's own modules write in torch is watched, edited, and served by the engine."""

import math

import pytest
import torch
from tests.unit.interop.tiny_models import watched
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

import regard as rg
from regard.errors import SettingError, ShapeError

B, N, C, H, G = 2, 5, 12, 3, 1


class SelfAttention(nn.Module):
    """Causal attention as nanoGPT has it; optionally with grouped heads."""

    def __init__(self, groups=H, *, by_hand=False):
        super().__init__()
        self.groups, self.by_hand = groups, by_hand
        self.project = nn.Linear(C, C + 2 * groups * (C // H))
        self.out = nn.Linear(C, C)

    def forward(self, states, mask=None, dropout=0.0):
        B, N, _ = states.shape
        q, k, v = (
            each.view(B, N, -1, C // H).transpose(1, 2)
            for each in self.project(states).split([C] + 2 * [self.groups * (C // H)], dim=2)
        )
        if self.by_hand:
            scores = (q @ k.mT / math.sqrt(C // H)).masked_fill(
                ~torch.ones(N, N).tril().bool(), float("-inf")
            )
            mixed = rg.mark_weights(scores.softmax(-1)) @ v
        else:
            mixed = F.scaled_dot_product_attention(
                *(q, k, v), mask, dropout, is_causal=mask is None, enable_gqa=self.groups < H
            )
        return self.out(mixed.transpose(1, 2).reshape(B, N, C))


class Block(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.attn = SelfAttention(**options)

    def forward(self, states, *mask):
        return states + self.attn(states, *mask)


class Own(nn.Module):
    def __init__(self, layers=2, **options):
        super().__init__()
        self.h = nn.ModuleList(Block(**options) for _ in range(layers))

    def forward(self, states, *mask):
        for block in self.h:
            states = block(states, *mask)
        return states


class Cross(nn.Module):
    def forward(self, states, memory):
        return F.scaled_dot_product_attention(states, memory, memory)


FORMS = [{}, {"groups": G}, {"by_hand": True}]


def weights_of(attention, states, mask):
    """The weights in float64 by the formula."""
    with torch.no_grad():
        projected = attention.project(states).double()
    q, k, _ = projected.split([C] + 2 * [attention.groups * (C // H)], dim=2)
    q, k = (each.unflatten(2, (-1, C // H)).transpose(1, 2) for each in (q, k))
    scores = q @ k.repeat_interleave(H // attention.groups, dim=1).mT / math.sqrt(C // H)
    return scores.masked_fill(~mask, float("-inf")).softmax(-1)


@pytest.mark.parametrize("form", FORMS)
def test_modules_of_ones_own_are_watched_and_compute_what_they_did(form):
    model, states = Own(**form), torch.randn(B, N, C)
    before = model(states)
    with torch.no_grad(), rg.watch(model, keep=True) as seen:
        after = model(states)
    assert torch.equal(after, before)
    assert [(each.kind, each.layer, each.name) for each in seen] == [
        ("decoder", 0, "h.0.attn"),
        ("decoder", 1, "h.1.attn"),
    ]
    expected = weights_of(model.h[0].attn, states, torch.ones(N, N).tril().bool())
    assert_close(seen.rows(0, range(N)), expected.float(), atol=1e-6, rtol=1e-5)
    assert_close(seen.summary(0).received, expected.sum(-2).float(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("is_boolean", [True, False])
def test_masks_are_read_as_torch_reads_them(is_boolean):
    model, states = Own(1), torch.randn(B, N, C)
    visible = torch.rand(B, 1, N, N) > 0.4
    visible[..., 0] = True
    mask = visible if is_boolean else torch.zeros(visible.shape).masked_fill(~visible, -torch.inf)
    seen = watched(model, states, mask, keep=True)
    expected = weights_of(model.h[0].attn, states, visible)
    assert_close(seen.rows(0, range(N)), expected.float(), atol=1e-6, rtol=1e-5)
    assert seen[0].kind == "encoder"


def test_attention_to_another_sequence_is_cross():
    (seen,) = watched(Cross(), torch.randn(B, H, 3, 4), torch.randn(B, H, 7, 4))
    assert (seen.kind, seen.summary.shape) == ("cross", (B, H, 3, 7))


@pytest.mark.parametrize("form", FORMS)
def test_modules_of_ones_own_are_edited(form):
    model, states = Own(**form), torch.randn(B, N, C)
    with torch.no_grad(), rg.edit(model) as edits:
        edits.mute(0)
        before, after = edits.compare(lambda: model(states))
    assert_close(before, model(states), atol=1e-5, rtol=1e-5)
    bare = model.h[1](states + model.h[0].attn.out.bias)
    assert_close(after, bare, atol=1e-5, rtol=1e-5)
    with torch.no_grad(), rg.edit(model) as edits, rg.watch(model, keep=True) as seen:
        edits.hide(query=range(2, N), key=1, head=2)
        model(states)
    rows = seen.rows(0, [3])
    assert_close(rows.sum(-1), torch.ones(B, H, 1))
    assert rows[:, 2, 0, 1].eq(0).all()
    assert rows[:, :2, 0, 1].gt(0).all()


def test_rows_of_marked_weights_are_fixed():
    model, states = Own(1, by_hand=True), torch.randn(B, N, C)
    with torch.no_grad(), rg.edit(model) as edits:
        edits.fix(4, [0.0, 1.0], layer=0)
        _, after = edits.compare(lambda: model.h[0].attn(states))
    value = model.h[0].attn.project(states)[..., 2 * C :]
    assert_close(after[:, 4], model.h[0].attn.out(value[:, 1]), atol=1e-5, rtol=1e-5)


def test_use_has_the_engine_compute_them_with_gradients_and_also_twice_and_after_an_error():
    model, states = Own(), torch.randn(B, N, C)
    before = model(states)
    expected = torch.autograd.grad(before.square().sum(), model.h[0].attn.project.weight)[0]
    calls = []
    rg.use(rg.use(model))
    with pytest.raises(RuntimeError):
        model(torch.zeros(B, N, C + 1))
    with rg.observe(calls.append):
        after = model(states)
    assert len(calls) == 2
    assert_close(after, before, atol=1e-5, rtol=1e-5)
    gradient = torch.autograd.grad(after.square().sum(), model.h[0].attn.project.weight)[0]
    assert_close(gradient, expected, atol=1e-4, rtol=1e-4)
    assert [each.name for each in watched(model, states)] == ["h.0.attn", "h.1.attn"]


@pytest.mark.usefixtures("as_users_have_it")
def test_a_compiled_model_says_so():
    compiled = torch.compile(Own(), backend="eager")
    message = r"got OptimizedModule, which is compiled\. Watch model\._"
    with pytest.raises(SettingError, match=message):
        watched(compiled, torch.randn(B, N, C))


def test_what_cannot_be_seen_says_how_it_could_be():
    class Manual(nn.Module):
        def forward(self, states):
            return (states @ states.mT).softmax(-1) @ states

    with pytest.raises(SettingError, match=r"mark_weights\(scores"):
        watched(Manual(), torch.zeros(1, 3, 4))
    with pytest.raises(SettingError, match="or a module that calls F"):
        rg.use(nn.Linear(3, 3))
    with pytest.raises(ShapeError, match="weights must have the axes"), rg.observe(print):
        rg.mark_weights(torch.ones(2, 2))
