"""Queries and keys of heads on a page: their products are the scores that the model computes."""

import math
from typing import Any

import pytest
import torch
from tests.unit.interop.tiny_folders import ENGLISH, byte_tokenizer, save

import regard
from regard.errors import SettingError
from regard.interop.pages import neurons
from regard.interop.pages.neurons import fitting
from regard.viewer import Document, Example

transformers = pytest.importorskip("transformers")

TEXT = ENGLISH[:15]
SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "intermediate_size": 17}
GROUPED = {"num_attention_heads": 4, "num_key_value_heads": 2}
# By what is special: turned by positions and grouped; added by positions; bounded.
MODELS: dict[str, Any] = {
    "gpt2": lambda V: transformers.GPT2Config(vocab_size=V, n_embd=24, n_layer=2, n_head=4),
    "llama": lambda V: transformers.LlamaConfig(vocab_size=V, **SIZES, **GROUPED),
    "gemma2": lambda V: transformers.Gemma2Config(
        vocab_size=V, **SIZES, **GROUPED, head_dim=6, attn_logit_softcapping=2.0
    ),
    "t5": lambda V: transformers.T5Config(
        vocab_size=V,
        d_model=24,
        d_kv=6,
        d_ff=17,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
    ),
}


def model_of(name, tmp_path):
    tokenizer = byte_tokenizer()
    config = MODELS[name](len(tokenizer))
    save(transformers.AutoModel.from_config(config), tokenizer, tmp_path)
    return transformers.AutoModel.from_pretrained(tmp_path).eval(), tokenizer


def scores_of(head):
    scores = head.scale * head.query.values() @ head.key.values().T
    if head.softcap is not None:
        scores = head.softcap * torch.tensor(scores / head.softcap).tanh().numpy()
    return torch.tensor(scores + (0 if head.bias is None else head.bias.values()))


@pytest.mark.parametrize("name", MODELS)
def test_products_of_queries_and_keys_are_the_scores(name, tmp_path):
    model, tokenizer = model_of(name, tmp_path)
    target = {"target": "a mat"} if name == "t5" else {}
    document = regard.look(model, tokenizer, TEXT, **target).document
    (example,) = document.examples
    eager = transformers.AutoModel.from_pretrained(tmp_path, attn_implementation="eager").eval()
    with torch.no_grad():
        ids = tokenizer(TEXT, return_tensors="pt").input_ids
        inputs = {"decoder_input_ids": ids} if target else {}
        out = eager(input_ids=ids, output_attentions=True, **inputs)
        weights = out.encoder_attentions if target else out.attentions
    own = [head for head in example.vectors if head.kind == ("encoder" if target else "decoder")]
    assert [(head.layer, head.head) for head in own] == [(n // 4, n % 4) for n in range(8)]
    for head in own:
        expected = weights[head.layer][0, head.head].double()
        scores = scores_of(head).masked_fill(expected == 0, -math.inf)
        torch.testing.assert_close(scores.softmax(-1), expected, atol=2e-5, rtol=2e-4)
    assert any(head.bias is not None for head in example.vectors) == (name == "t5")
    assert any(head.softcap is not None for head in example.vectors) == (name == "gemma2")
    assert Document.from_json(document.to_json()) == document


def test_queries_and_keys_are_those_of_the_weights(tmp_path):
    model, tokenizer = model_of("gpt2", tmp_path)
    (example,) = regard.look(model, tokenizer, TEXT).document.examples
    block, ids = model.h[0], torch.tensor(tokenizer(TEXT).input_ids)
    with torch.no_grad():
        states = block.ln_1(model.wte(ids) + model.wpe.weight[: len(ids)])
        query, key, _ = (states @ block.attn.c_attn.weight + block.attn.c_attn.bias).split(24, -1)
    for head in example.vectors[:4]:
        part = slice(6 * head.head, 6 * head.head + 6)
        near = {"atol": 1e-6, "rtol": 1e-5}
        got = [torch.tensor(each.values()).float() for each in (head.query, head.key)]
        torch.testing.assert_close(got, [query[:, part], key[:, part]], **near)
        assert head.scale == pytest.approx(6**-0.5)


def test_a_page_has_the_heads_that_are_named_or_all_that_fit(tmp_path, monkeypatch):
    model, tokenizer = model_of("gpt2", tmp_path)

    def heads(**options):
        examples = regard.look(model, tokenizer, [TEXT, TEXT[:9]], **options).document.examples
        assert {len(each.vectors) for each in examples} == {len(examples[0].vectors)}
        return [(each.layer, each.head) for each in examples[0].vectors]

    assert heads() == [(layer, head) for layer in range(2) for head in range(4)]
    assert heads(neurons=[(1, 3), (0, 2)]) == [(0, 2), (1, 3)]
    assert heads(neurons=[(1, 3)], heads=3) == [(1, 3)]
    with pytest.raises(SettingError, match=r"neurons must name heads LAYER.HEAD.*; got 1\.4, 2\.0"):
        heads(neurons=[(1, 4), (0, 1), (2, 0)])
    monkeypatch.setattr(neurons, "MOST_BYTES", 2_000)
    assert heads() == []
    assert len(heads(neurons=[(0, 2)])) == 1
    with pytest.raises(SettingError, match=r"neurons must name heads whose queries.*; got 16, "):
        heads(neurons=[(layer, head) for layer in range(2) for head in range(4)])


def test_half_as_many_bits_are_kept_where_all_do_not_fit(tmp_path, monkeypatch):
    model, tokenizer = model_of("llama", tmp_path)
    (example,) = regard.look(model, tokenizer, TEXT).document.examples
    monkeypatch.setattr(neurons, "MOST_BYTES", 2_000)
    (small,) = fitting([example], None)
    assert {each.query.bits for each in example.vectors} == {32}
    assert {each.query.bits for each in small.vectors} == {16}
    for one, other in zip(example.vectors, small.vectors, strict=True):
        torch.testing.assert_close(scores_of(one), scores_of(other), atol=1e-3, rtol=1e-3)


def test_weights_that_a_model_computes_itself_have_no_queries(tmp_path):
    config = {**SIZES, "num_attention_heads": 4, "position_buckets": 8, "relative_attention": True}
    tokenizer = byte_tokenizer()
    model = transformers.DebertaV2Model(
        transformers.DebertaV2Config(vocab_size=len(tokenizer), **config)
    ).eval()
    (example,) = regard.look(model, tokenizer, TEXT).document.examples
    assert isinstance(example, Example)
    assert example.vectors == ()
    with pytest.raises(SettingError, match=r"whose scores are products.*; got 0\.1"):
        regard.look(model, tokenizer, TEXT, neurons=[(0, 1)])
