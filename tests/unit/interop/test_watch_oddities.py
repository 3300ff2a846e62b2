"""Models that share layers, skip the engine, compute twice, are compiled or run elsewhere."""

import threading

import pytest
import torch
from tests.unit.interop.tiny_models import SIZES, V, llama, tiny, watched
from torch import nn
from torch.testing import assert_close

import regard as rg
from regard.errors import SettingError

STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def bert():
    return tiny("BertModel", "BertConfig", **SIZES, **STILL)


def ids(length=11):
    return torch.randint(3, V, (2, length))


def locations(calls):
    return [(each.kind, each.layer, each.call) for each in calls]


def entropies(weights):
    return -(weights * weights.clamp_min(1e-30).log()).sum(-1)


@torch.no_grad()
def test_one_module_that_is_all_layers_has_a_call_a_layer():
    model = tiny("AlbertModel", "AlbertConfig", **SIZES, **STILL, embedding_size=5)
    token_ids = ids()
    model.set_attn_implementation("eager")
    expected = model(token_ids, output_attentions=True).attentions
    with rg.watch(model) as seen:
        model(token_ids)
        model(token_ids)
    assert locations(seen) == [("encoder", layer, call) for call in (0, 1) for layer in range(3)]
    for layer, weights in enumerate(expected):
        assert_close(seen.summary(layer).entropy, entropies(weights), atol=1e-5, rtol=0)
    with rg.edit(model) as edits:
        edits.mute(1)
        before, after = edits.compare(
            lambda: model(token_ids, output_hidden_states=True).hidden_states
        )
    same = [torch.equal(*states) for states in zip(before, after, strict=True)]
    assert same == [True, True, False, False]


@torch.no_grad()
def test_a_repeated_layer_of_ones_own_has_a_call_each_and_twins_are_two_passes():
    class Repeated(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(12, 3, 7, batch_first=True)

        def forward(self, states):
            for _ in range(3):
                states = self.layer(states)
            return states

    class Twins(nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = bert()

        def forward(self, one, other):
            return self.bert(one)[0].mean(1) - self.bert(other)[0].mean(1)

    seen = watched(rg.use(Repeated().eval()), torch.randn(2, 5, 12))
    assert locations(seen) == [("encoder", layer, 0) for layer in range(3)]
    seen = watched(Twins(), ids(), ids(5))
    assert locations(seen) == [("encoder", layer, call) for call in (0, 1) for layer in range(3)]
    assert [each.summary.entropy.shape[-1] for each in seen] == [11] * 3 + [5] * 3


@torch.no_grad()
def test_the_same_weights_with_other_values_are_one_attention():
    sizes = {**SIZES, "num_attention_heads": 4, "hidden_size": 16, "num_key_value_heads": 2}
    model = tiny("DiffLlamaModel", "DiffLlamaConfig", **sizes)
    assert locations(watched(model, ids())) == [("decoder", layer, 0) for layer in range(3)]


@torch.no_grad()
def test_the_same_queries_under_another_mask_are_another_attention():
    class Twice(nn.Module):
        def forward(self, states):
            mixed = rg.attend(states, states, states)
            return mixed + rg.attend(states, states, states, mask=rg.causal())

    seen = watched(Twice(), torch.randn(2, 3, 5, 7))
    assert [each.kind for each in seen] == ["encoder", "decoder"]


@torch.no_grad()
def test_attention_past_the_engine_is_refused_unless_other_kinds_are_named():
    sizes = {"d_model": 12, "d_kv": 4, "d_ff": 7, "num_layers": 2, "num_heads": 3}
    model = tiny("LongT5Model", "LongT5Config", vocab_size=V, local_radius=3, **sizes)
    batch = {"input_ids": ids(), "decoder_input_ids": ids(5)}
    with pytest.raises(SettingError, match=r"got LongT5LocalAttention at encoder\.block\.0\."):
        watched(model, batch)
    kinds = ("decoder", "cross")
    assert {each.kind for each in watched(model, batch, kinds=kinds)} == set(kinds)

    def change(**chosen):
        with rg.edit(model) as edits:
            edits.mute(head=0, **chosen)
            model(**batch)

    with pytest.raises(SettingError, match=r"LongT5LocalAttention\) computes its own\. Name a la"):
        change(layer=None)
    change(layer=None, kind="cross")


def test_torchs_own_attention_in_a_hugging_face_model_is_refused_until_it_is_served():
    class Topped(nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = bert()
            self.top = nn.MultiheadAttention(12, 3, batch_first=True)

        def forward(self, inputs):
            states = self.bert(inputs)[0]
            return self.top(states, states, states, need_weights=False)[0]

    model = Topped().eval()
    with pytest.raises(SettingError, match="got MultiheadAttention at top, which computes its own"):
        watched(model, ids())
    assert len(watched(rg.use(model), ids())) == 4


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("use_reentrant", [True, False])
def test_what_a_checkpoint_recomputes_is_recorded_once(use_reentrant):
    model, token_ids = llama().train(), ids()

    def gradient():
        model.zero_grad()
        model(token_ids, labels=token_ids).loss.backward()
        return model.model.layers[0].self_attn.q_proj.weight.grad.clone()

    expected = gradient()
    with rg.edit(model) as edits:
        edits.mute(1, 0)
        muted = gradient()
    model.gradient_checkpointing_enable({"use_reentrant": use_reentrant})
    with rg.watch(model) as seen:
        gradient_found = gradient()
    assert_close(gradient_found, expected)
    assert locations(seen) == [("decoder", layer, 0) for layer in range(3)]
    with rg.edit(model) as edits:
        edits.mute(1, 0)
        assert_close(gradient(), muted)
    assert not torch.allclose(muted, expected)


@torch.no_grad()
def test_only_the_model_itself_is_watched_and_edited():
    model, other_model, token_ids = bert(), rg.use(bert()), ids()
    with rg.watch(other_model):
        expected = other_model(token_ids)[0]
    with (
        rg.watch(model) as seen,
        rg.watch(other_model) as other_watched,
        rg.edit(model) as edits,
    ):
        edits.mute(0)
        model(token_ids)
        output = other_model(token_ids)[0]
    assert locations(seen) == locations(other_watched) == [("encoder", n, 0) for n in range(3)]
    assert_close(output, expected, atol=0, rtol=0)


@torch.no_grad()
def test_a_call_in_another_thread_is_an_error():
    model, token_ids = bert(), ids()

    def elsewhere():
        thread = threading.Thread(target=model, args=(token_ids,))
        thread.start()
        thread.join()

    def watch():
        with rg.watch(model):
            elsewhere()

    with pytest.raises(SettingError, match="must be called in the thread of the block"):
        watch()
    with rg.watch(model) as seen:
        model(token_ids)
        elsewhere()
    assert locations(seen) == [("encoder", layer, 0) for layer in range(3)]


@pytest.mark.usefixtures("as_users_have_it")
@pytest.mark.filterwarnings("ignore")
@torch.no_grad()
@pytest.mark.slow
def test_a_compiled_model_is_watched():
    model, token_ids = bert(), ids()
    expected = model(token_ids)[0]
    compiled = torch.compile(model, backend="eager")
    with rg.watch(model) as plain:
        model(token_ids)
    for _ in range(2):
        with rg.watch(compiled) as seen:
            assert_close(compiled(token_ids)[0], expected, atol=1e-5, rtol=0)
        assert locations(seen) == locations(plain)
        assert_close(seen.summary(2).received, plain.summary(2).received, atol=1e-4, rtol=0)
    torch.compiler.reset()
