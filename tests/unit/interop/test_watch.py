"""Whole models are watched: layers, kinds, names, steps, padding, and what is refused."""

import sys
from functools import partial

import pytest
import torch
from tests.unit.export.random_runs import language_model, translator
from tests.unit.interop.tiny_models import V, llama, tiny, watched
from torch import nn
from torch.testing import assert_close

import regard as rg
from regard.attention.observing import current_editor, current_observer
from regard.errors import SettingError, ShapeError
from regard.layers import MultiHeadAttention
from regard.models import Transformer, TransformerConfig


def make_model(**options):
    config = TransformerConfig(
        model_dim=12, num_heads=3, num_encoder_layers=2, num_decoder_layers=2, ffn_dim=7, **options
    )
    return Transformer(config, source_vocab=V, target_vocab=V).eval()


def pair():
    return {
        "source": torch.randint(4, V, (2, 7)),
        "source_lengths": torch.tensor([7, 5]),
        "target": torch.randint(4, V, (2, 5)),
    }


def torchs():
    layer = nn.TransformerEncoderLayer(12, 3, 7, batch_first=True)
    return rg.use(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)).eval()


def test_our_model_says_what_its_layers_look_at():
    model, batch = make_model(), pair()
    calls = []
    with torch.no_grad(), rg.observe(calls.append), rg.watch(model, top=2) as seen:
        model(**batch)
    assert [(each.kind, each.layer, each.call) for each in seen] == [
        (kind, layer, 0) for kind in ("encoder", "decoder", "cross") for layer in (0, 1)
    ]
    assert [each.name for each in seen][::3] == ["encoder.0.attend", "decoder.1.attend"]
    assert len(calls) == 6  # whoever observed before still does
    for call in calls:
        weights = rg.weights(call.query, call.key, mask=call.mask)
        summary = seen.summary(call.layer, call.kind)
        assert_close(summary.top_weights, weights.topk(2).values)


def test_padding_does_not_count_in_the_encoder_nor_a_targets_where_queries_say_so():
    model, batch = make_model(), pair()
    received = watched(model, batch).summary(0, "encoder").received.sum(-1)
    assert_close(received, torch.tensor([[7.0], [5.0]]).expand(2, 3))
    real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    seen = watched(model, batch, queries={"cross": real})
    received = seen.summary(0, "cross").received.sum(-1)
    assert_close(received, torch.tensor([[5.0], [3.0]]).expand(2, 3))
    assert_close(seen.summary(0, "decoder").received.sum(-1), torch.full((2, 3), 5.0))


def test_steps_of_our_decoder_are_joined_and_are_those_of_one_pass():
    model, batch = make_model(), pair()
    with torch.no_grad(), rg.watch(model) as steps:
        state = model.start(batch["source"], batch["source_lengths"])
        for step in range(5):
            _, state = model.step(batch["target"][:, step], state)
    one_pass = watched(model, batch)
    assert len(steps) == len(one_pass) == 6
    for one, expected in zip(steps, one_pass, strict=True):
        assert (one.kind, one.layer, one.name) == (expected.kind, expected.layer, expected.name)
        for name, tensor in expected.summary.tensors().items():
            # How far a word of another text is depends on how many queries there are.
            if (one.kind, name) != ("cross", "distance"):
                assert_close(getattr(one.summary, name), tensor, msg=f"{one.kind} {name}")


def test_each_forward_is_a_pass_of_its_own():
    model, batch = make_model(), pair()
    with torch.no_grad(), rg.watch(model, kinds="cross", layers=1) as seen:
        model(**batch)
        model(**batch | {"target": batch["target"][:, :3]})
    assert [each.call for each in seen] == [0, 1]
    assert seen.summary(1).shape[-2:] == (3, 7)
    assert seen.summary(1, call=0).shape[-2:] == (5, 7)


def test_two_generations_are_two_passes():
    model, ids = llama(), torch.randint(4, V, (1, 5))
    options = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    with rg.watch(model, layers=[2]) as seen:
        model.generate(ids, **options)
        model.generate(ids, **options, use_cache=False)
    assert [each.call for each in seen] == [0, 1, 2, 3, 4]
    assert [each.summary.shape[-2] for each in seen] == [8, 5, 6, 7, 8]


def test_torchs_layers_are_distinguished():
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(12, 3, 7, batch_first=True), 2)
    rg.use(decoder.eval())
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    seen = watched(decoder, torch.randn(2, 5, 12), torch.randn(2, 7, 12), mask)
    assert [(each.kind, each.layer, each.name) for each in seen] == [
        ("decoder", 0, "layers.0.self_attn"),
        ("decoder", 1, "layers.1.self_attn"),
        ("cross", 0, "layers.0.multihead_attn"),
        ("cross", 1, "layers.1.multihead_attn"),
    ]


class Own(nn.Module):
    """A model of someone's own, that attends by itself and with our layers."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(MultiHeadAttention(12, 3) for _ in range(2))
        self.reader = MultiHeadAttention(12, 3, key_value_dim=12)

    def forward(self, states):
        for block in self.blocks:
            states = block(states, mask=rg.causal())[0]
        states = self.reader(states, memory=states * 2)[0]
        return rg.attend(states, states)


def test_a_model_that_names_no_layers_is_described_by_its_modules():
    seen = watched(Own().eval(), torch.randn(2, 5, 12))
    assert [(each.kind, each.layer, each.name) for each in seen] == [
        ("encoder", 0, ""),
        ("decoder", 0, "blocks.0"),
        ("decoder", 1, "blocks.1"),
        ("cross", 0, "reader"),
    ]


@pytest.mark.parametrize("make", [make_model, llama])
def test_chosen_heads_and_layers_are_those_of_the_whole(make):
    model = make()
    batch = pair() if make is make_model else {"input_ids": torch.randint(4, V, (2, 7))}
    with torch.no_grad(), rg.watch(model) as all_heads, rg.watch(model, [1], [2, 0]) as chosen:
        model(**batch)
    assert {each.layer for each in chosen} == {1}
    for each in chosen:
        assert each.heads == (2, 0)
        expected = all_heads.summary(1, each.kind)
        for name, tensor in each.summary.tensors().items():
            assert_close(tensor, getattr(expected, name)[:, [2, 0]])


def test_heads_of_a_bias_and_of_sinks_are_chosen_with_them():
    class Odd(nn.Module):
        def forward(self, states, bias, mask):
            return rg.attend(states, states, bias=bias, mask=mask, weighting=rg.Softmax(sink))

    sink, model = torch.randn(3), Odd()
    states = torch.randn(2, 3, 5, 4)
    for bias in (torch.randn(3, 5, 5), torch.randn(2, 1, 5, 5), rg.alibi(), None):
        for mask in (None, rg.causal(), torch.rand(3, 5, 5) > 0.3):
            with rg.watch(model) as whole, rg.watch(model, heads=1) as part:
                model(states, bias, mask)
            assert_close(part[0].summary.pooled, whole[0].summary.pooled[:, [1]])


def test_exact_rows_of_stored_queries_and_keys():
    model, ids = llama(), torch.randint(4, V, (2, 6))
    options = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    with rg.watch(model, keep=True, heads=[3, 1]) as seen:
        model.generate(ids, **options)
    rows = seen.rows(1, range(9))
    assert rows.shape == (2, 2, 9, 9)
    assert_close(rows, seen.summary(1).pooled)
    assert_close(seen.rows(1, [7, 2]), rows[:, :, [7, 2]])
    with pytest.raises(SettingError, match="queries must be positions that were seen; got 9"):
        seen.rows(1, [9])


def test_rollout_through_the_layers_of_a_model():
    seen = watched(torchs(), torch.randn(1, 5, 12), keep=True)
    first, second = (
        seen.rows(layer, range(5)).mean(1)[0] / 2 + torch.eye(5) / 2 for layer in (0, 1)
    )
    assert_close(seen.rollout([4])[0], (second @ first)[[4]])


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (make_model, pair()),
        (torchs, {"src": torch.randn(2, 6, 12)}),
        (lambda: llama().model, {"input_ids": torch.randint(4, V, (2, 6))}),
    ],
    ids=["ours", "torch's", "Llama"],
)
@torch.no_grad()
def test_one_pass_over_attention_gives_summaries_and_the_models_output(make, inputs, monkeypatch):
    def fail(call):
        raise AssertionError("attention was computed beside its summary")

    model = make()
    plain = model(**inputs)
    monkeypatch.setattr(sys.modules["regard.attention.attend"], "plan_of", fail)
    with rg.watch(model) as seen:
        out = model(**inputs)
    assert len(seen) > 1
    assert_close(*(getattr(each, "last_hidden_state", each) for each in (out, plain)))


def test_watching_changes_neither_outputs_nor_gradients():
    model, ids = llama(), torch.randint(4, V, (2, 6))
    rg.use(model)
    grads = []
    for is_watched in (False, True):
        model.zero_grad()
        if is_watched:
            with rg.watch(model):
                model(ids).logits.square().mean().backward()
        else:
            model(ids).logits.square().mean().backward()
        grads.append([parameter.grad for parameter in model.parameters()])
    for plain, with_watch in zip(*grads, strict=True):
        assert torch.equal(plain, with_watch)


@pytest.mark.parametrize("name", ["eager", "sdpa"])
def test_a_model_is_what_it_was_before_also_after_an_error_and_nested(name):
    model = llama()
    model.set_attn_implementation(name)

    def hooks():
        modules = list(model.modules())
        return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in modules)

    def fail():
        with rg.watch(model), rg.edit(model):
            with pytest.warns(UserWarning, match="saw no attention"), rg.watch(model):
                pass
            assert model.config._attn_implementation == "regard"
            model(torch.tensor([[V + 1]]))

    before = hooks()
    with pytest.raises(IndexError):
        fail()
    assert model.config._attn_implementation == name
    assert hooks() == before
    assert current_observer() is None
    assert current_editor() is None


def test_parts_of_a_model_are_put_back_each_to_its_own():
    from transformers import CLIPConfig, CLIPModel

    small = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 3}
    text = {**small, "intermediate_size": 7, "vocab_size": V, "max_position_embeddings": 16}
    vision = {**small, "intermediate_size": 7, "image_size": 4, "patch_size": 2}
    model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision)).eval()
    model.set_attn_implementation({"text_config": "eager", "vision_config": "sdpa"})

    def names():
        parts = (model, model.text_model, model.vision_model)
        return [part.config._attn_implementation for part in parts]

    before = names()
    seen = watched(model, torch.randint(0, V, (1, 5)), torch.randn(1, 3, 4, 4))
    assert {each.name.split(".")[0] for each in seen} == {"text_model", "vision_model"}
    assert names() == before
    assert {"eager", "sdpa"} <= set(before)


def test_names_that_are_not_there_are_errors():
    watch = partial(watched, llama(), torch.randint(4, V, (1, 6)))
    with pytest.raises(SettingError, match="layers must be of 0, 1, 2; got 7"):
        watch(layers=[1, 7])
    with pytest.raises(SettingError, match=r"heads must be below 4, .*layers\.0.*; got 4"):
        watch(heads=4)
    for wrong in ({"layers": -1}, {"layers": "1"}, {"layers": [0, False]}, {"heads": 1.5}):
        with pytest.raises(SettingError, match="s must be whole numbers from 0; got"):
            watch(**wrong)
    with pytest.raises(SettingError, match="kind must be one of"):
        watch(kinds="crosses")
    with pytest.raises(ShapeError, match="queries must have a position for each of 6 queries"):
        watch(queries=torch.ones(1, 5, dtype=torch.bool))
    with pytest.raises(SettingError, match="call must be of the passes that were seen, 1; got 1"):
        watch().summary(0, call=1)
    with pytest.raises(SettingError, match=r"layer must be one of those .*; got layer=3"):
        watch().summary(3)
    with pytest.raises(SettingError, match="keep must be True; got False"):
        watch().rows(0, [1])
    seen = watched(make_model(), pair())
    with pytest.raises(SettingError, match=r"encoder 0 encoder\.0\.attend, .*layer=0, kind=None"):
        seen.summary(0)
    assert seen.summary(-1, "cross") is seen.summary(1, "cross")


def test_models_whose_attention_cannot_be_seen_are_refused():
    mamba = tiny("MambaModel", "MambaConfig", vocab_size=V, hidden_size=12, num_hidden_layers=1)
    with pytest.raises(SettingError, match="AttentionInterface; got MambaModel, none of whose"):
        watched(mamba, torch.randint(V, (1, 5)))
    with pytest.raises(SettingError, match=r"Call regard\.use\(model\) first"):
        watched(nn.TransformerEncoderLayer(12, 3), torch.zeros(1, 12))
    with pytest.raises(SettingError, match="got Linear, none of whose attention could be seen"):
        watched(nn.Linear(12, 12), torch.zeros(1, 12))


def test_a_slice_of_queries_counts_through_the_steps():
    model, ids = llama(), torch.randint(4, V, (1, 6))
    with rg.watch(model, queries=slice(5, 8)) as seen:
        model.generate(ids, max_new_tokens=5, do_sample=False, pad_token_id=0)
    summary = seen.summary(0)
    assert summary.counts[0, 0].nonzero().flatten().tolist() == [5, 6, 7]
    assert_close(summary.received.sum(-1), torch.full((1, 4), 3.0))


def test_a_prompt_counts_for_each_row_of_its_beam():
    model = language_model(None)
    with rg.watch(model, keep=True) as greedy:
        model.predict("I love", max_tokens=5)
    with rg.watch(model, keep=True) as beam:
        model.predict("I love", method="beam", beam_size=3, max_tokens=5)
    assert beam.summary(1).shape[:2] == (3, 4)
    assert "3 × 4 of" in repr(beam)
    for copy in range(3):
        assert_close(beam.rows(1, [2, 5])[copy], greedy.rows(1, [2, 5])[0])
        assert_close(beam.summary(1).entropy[copy, :, :6], greedy.summary(1).entropy[0, :, :6])


def test_texts_of_which_one_ends_before_the_other_are_watched_one_by_one():
    with rg.watch(model := translator(None)) as seen:
        model.predict(["我爱中国。", "明天会下雨。他爱你吗？"], method="beam", beam_size=3)
    with pytest.raises(SettingError, match="must be watched one by one in a search, which leaves"):
        seen.summary(0, "decoder")


def test_a_long_generation_is_joined_as_it_goes():
    model, ids = llama(), torch.randint(4, V, (1, 3))
    with rg.watch(model, layers=0, map=8, keep=True) as seen:
        out = model.generate(ids, max_new_tokens=70, do_sample=False, pad_token_id=0)
    with torch.no_grad(), rg.watch(model, layers=0, map=8) as one_pass:
        model(out[:, :-1])
    for name, tensor in one_pass.summary(0).tensors().items():
        assert_close(getattr(seen.summary(0), name), tensor, msg=name)


def test_empty_positions_of_a_static_cache_are_no_keys():
    model, ids = llama(), torch.randint(4, V, (2, 5))
    options = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    with rg.watch(model) as seen:
        model.generate(ids, **options, cache_implementation="static")
    with rg.watch(model) as growing:
        model.generate(ids, **options)
    for static, expected in zip(seen, growing, strict=True):
        for name, tensor in expected.summary.tensors().items():
            assert_close(getattr(static.summary, name), tensor, msg=name)


def test_a_watch_without_a_call_says_so():
    model = rg.use(nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True), 1))
    with (
        pytest.warns(
            UserWarning, match="the watch saw no attention: TransformerEncoder has none, or"
        ),
        rg.watch(model) as seen,
    ):
        pass
    with pytest.raises(SettingError, match="must call TransformerEncoder; it saw no attention"):
        seen.summary(0)
