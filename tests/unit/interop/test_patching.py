"""Parts of another run are put into a run, as hooks written by hand do it."""

import pytest
import torch
from tests.unit.interop.test_attribute import Causal
from tests.unit.interop.test_watch import make_model, pair
from tests.unit.interop.tiny_models import SIZES, V, gpt2, llama, tiny
from torch.testing import assert_close

import regard as rg
from regard.errors import SettingError, ShapeError

N, H = 5, 3
ONE, OTHER = torch.tensor([[4, 9, 5, 7, 9]]), torch.tensor([[4, 2, 5, 7, 9]])


@pytest.fixture
def model():
    return Causal().double().eval()


def by_hand(model, change):
    """Logits of ONE, with what the output projection of each layer is given changed."""
    source_values, hooks = {}, []
    outs = [block.attn.out for block in model.body.h]
    for layer, out in enumerate(outs):
        hooks.append(
            out.register_forward_pre_hook(
                lambda _, args, n=layer: source_values.update({n: args[0]})
            )
        )
    model(OTHER)
    for hook in hooks:
        hook.remove()

    def hook(layer):
        def put(_, args):
            mixed = args[0].clone()
            change(layer, mixed.view(1, N, H, -1), source_values[layer].view(1, N, H, -1))
            return (mixed,)

        return put

    hooks = [out.register_forward_pre_hook(hook(layer)) for layer, out in enumerate(outs)]
    logits = model(ONE)[0]
    for each in hooks:
        each.remove()
    return logits


@torch.no_grad()
def test_every_head_of_every_layer_is_patched_as_by_hand(model):
    patched = rg.patch(model, ONE, OTHER, target=3, against=8, rows=4)
    expected = torch.empty(2, H, dtype=torch.float64)
    for layer in (0, 1):
        for head in range(H):

            def change(n, mixed, clean, layer=layer, head=head):
                if n == layer:
                    mixed[:, :, head] = clean[:, :, head]

            logits = by_hand(model, change)[0, -1]
            expected[layer, head] = logits[3] - logits[8]
    assert_close(patched.values, expected.float())
    logits = model(ONE)[0][0, -1]
    assert patched.before == pytest.approx(float(logits[3] - logits[8]))
    assert patched.layers == (0, 1)
    assert "head 2" in str(patched)
    (example,) = patched.page().document.examples
    assert example.head_names == ("towards the other run", "away from it")


@torch.no_grad()
@pytest.mark.parametrize("what", ["heads", "residual"])
def test_positions_are_patched(model, what):
    patched = rg.patch(model, ONE, OTHER, target=3, what=what, by="position", rows=3)
    if what == "residual":
        assert_close(patched.effects[1, -1], torch.tensor(1.0))
        assert_close(patched.effects[:, 0], torch.zeros(2), atol=1e-6, rtol=0)
        assert_close(patched.effects[1, :-1], torch.zeros(N - 1), atol=1e-6, rtol=0)
        return

    def change(n, mixed, clean):
        if n == 1:
            mixed[:, 4] = clean[:, 4]

    assert_close(patched.values[1, 4], by_hand(model, change)[0, -1, 3].float())


@torch.no_grad()
@pytest.mark.parametrize("what", ["queries", "keys", "values"])
def test_all_inputs_of_a_first_layer_make_its_output(model, what):
    source = rg.activations(model, OTHER)
    with rg.edit(model) as edits:
        for each in {"queries", "keys", "values"} - {what}:
            source.put_into(edits, each, layer=0)
        source.put_into(edits, what, layer=0)
        heads = rg.activations(model, ONE, modules=False).part("heads", ("decoder", 0))
    assert_close(heads, source.part("heads", ("decoder", 0)))
    with rg.edit(model) as edits, rg.watch(model, keep=True) as watched:
        source.put_into(edits, "queries", layer=0, head=1)
        model(ONE)
    with rg.watch(model, keep=True) as plain:
        model(ONE)
    changed = (watched.rows(0, range(N)) != plain.rows(0, range(N))).any(-1).any(-1)[0]
    assert changed.tolist() == [False, True, False]


@torch.no_grad()
def test_a_path_is_patched_through_a_frozen_run(model):
    """From head 0 of layer 0 to the queries of head 1 of layer 1, and nowhere else."""
    own, source = rg.activations(model, ONE), rg.activations(model, OTHER)
    with rg.edit(model) as edits:
        own.put_into(edits, "heads")
        source.put_into(edits, "heads", layer=0, head=0)
        middle = rg.activations(model, ONE, modules=False)
    with rg.edit(model) as edits:
        middle.put_into(edits, "queries", layer=1, head=1)
        logits = model(ONE)[0]

    def sender(n, mixed, clean):
        if n == 0:
            mixed[:, :, 0] = clean[:, :, 0]

    attn = model.body.h[1].attn
    inputs, hook = [], None
    hook = attn.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    by_hand(model, sender)
    hook.remove()
    query = attn.project(inputs[-1])[..., 4:8]
    hook = attn.project.register_forward_hook(
        lambda _, args, out: torch.cat([out[..., :4], query, out[..., 8:]], -1)
    )
    expected = model(ONE)[0]
    hook.remove()
    assert_close(logits, expected)
    assert not torch.allclose(logits, model(ONE)[0])


@torch.no_grad()
@pytest.mark.parametrize("what", ["heads", "values", "residual", "mlp"])
def test_models_of_transformers_and_ours_are_patched(what):
    by = "position" if what in ("residual", "mlp") else "head"
    for model in (llama(), gpt2(), tiny("BertForMaskedLM", "BertConfig", **SIZES)):
        patched = rg.patch(
            model, {"input_ids": ONE}, {"input_ids": OTHER}, target=3, what=what, by=by
        )
        assert patched.values.isfinite().all()
        assert (patched.values != patched.before).any()
    inputs = {name: each[:1] for name, each in pair().items()}
    other_inputs = {**inputs, "source": (inputs["source"] + 1).clamp(max=V - 1)}
    patched = rg.patch(
        make_model(), inputs, other_inputs, target=3, what=what, by=by, kind="encoder"
    )
    assert patched.values.shape == (2, 3 if by == "head" else 7)


def test_what_cannot_be_patched_says_why(model):
    with pytest.raises(SettingError, match="what must be one of"):
        rg.patch(model, ONE, OTHER, what="neurons")
    with pytest.raises(SettingError, match="by must be 'position' for mlp"):
        rg.patch(model, ONE, OTHER, what="mlp")
    with pytest.raises(ShapeError, match="source must be a run of as many tokens"):
        rg.patch(model, ONE, OTHER[:, :4])
    with pytest.raises(SettingError, match="kind must be one of decoder; got 'cross'"):
        rg.patch(model, ONE, OTHER, kind="cross")
    source = rg.activations(model, OTHER)
    with rg.edit(model) as edits, pytest.raises(SettingError, match="head must be None for resid"):
        source.put_into(edits, "residual", head=1)
    with pytest.raises(SettingError, match="source must hold heads of encoder 7"):
        source.part("heads", ("encoder", 7))

    def put(model, **where):
        with rg.edit(model) as edits:
            source.put_into(edits, "heads", **where)
            model(ONE)

    with pytest.raises(SettingError, match="head must be below 3, the heads of"):
        put(model, head=5)
    with pytest.raises(SettingError, match="got weights that were marked"):
        put(Causal(by_hand=True).double().eval())
