import base64
import json
import re

import numpy as np
import pytest
import torch
from tests.unit.inference.conftest import untrained

from regard.errors import SettingError
from regard.inference import live
from regard.inference.live import live_page, pack_model, rounded
from regard.kernels import why_not
from regard.runtime import in_precision
from regard.runtime.products import Int8Embedding, Int8Linear
from regard.tasks.labels.classification import LabelledText
from regard.text import Pair

PAIRS = [
    Pair(source, target, (target,), "test")
    for source, target in (("我爱中国", "I love China."), ("他看书", "He reads a book."))
]
TRANSFORMER = {"model_dim": 8, "num_heads": 2, "ffn_dim": 12, "values": "embeddings"}
TRANSFORMER |= {"num_encoder_layers": 1, "num_decoder_layers": 1, "tie_embeddings": "target"}
RECURRENT = {"type": "rnn_seq2seq", "embed_dim": 8, "hidden_dim": 6, "attention_dim": 5}


def predictor(model, **sections):
    table = {"model": {"type": "transformer", **model}, "tokenizer": {"type": "words"}, **sections}
    return untrained(table, PAIRS, seed=0)


def unpacked(packed):
    """The tensors as the page reads them."""
    data = base64.b64decode(packed["weights"])
    tensors = {}
    for entry in packed["tensors"]:
        count = int(np.prod(entry["shape"]))
        kind = "<f4" if entry["scales"] is None else "i1"
        values = np.frombuffer(data, kind, count, entry["at"]).astype(np.float32)
        values = values.reshape(entry["shape"])
        if entry["scales"] is not None:
            scales = np.frombuffer(data, "<f4", entry["shape"][0], entry["scales"])
            values = values * scales[:, None]
        tensors |= dict.fromkeys(entry["names"], values)
    return tensors


@pytest.mark.parametrize("model", [TRANSFORMER, RECURRENT])
def test_the_page_holds_the_rounded_model(model):
    translator = predictor(model)
    packed = pack_model(translator)
    tensors, expected = unpacked(packed), rounded(translator.model).state_dict()
    assert set(tensors) == set(expected)
    for name, tensor in expected.items():
        np.testing.assert_array_equal(tensors[name], tensor.numpy(), err_msg=name)
    assert all(entry["at"] % 4 == 0 for entry in packed["tensors"])
    names = [
        name
        for entry in packed["tensors"]
        if entry["scales"] is not None
        for name in entry["names"]
    ]
    assert "output.weight" in names
    assert not any(name.endswith("bias") or ".norm." in name for name in names)


def test_its_weights_are_those_of_int8():
    if why_not() is not None:
        pytest.skip("no compiled loops")
    translator = predictor(TRANSFORMER)
    expected = rounded(translator.model).state_dict()
    count = 0
    for name, module in in_precision(translator.model, "int8").named_modules(
        remove_duplicate=False
    ):
        if isinstance(module, Int8Linear | Int8Embedding):
            dequantised = module.values.float() * module.scales[:, None]
            torch.testing.assert_close(dequantised, expected[f"{name}.weight"], rtol=0, atol=0)
            count += 1
    # What mixes embeddings stays in float32: a matrix of cross-attention.
    assert count == 3 + 2 * 4 + 2


def test_a_model_that_is_rounded_keeps_its_own_weights():
    ours = predictor(TRANSFORMER)
    before = {name: tensor.clone() for name, tensor in ours.model.state_dict().items()}
    rounded(ours.model)
    for name, tensor in ours.model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_it_offers_every_head():
    kinds = [
        (one["kind"], one["layer"], one["heads"])
        for one in pack_model(predictor(TRANSFORMER))["attentions"]
    ]
    assert kinds == [("cross", 0, 2), ("encoder", 0, 2), ("decoder", 0, 2)]
    assert pack_model(predictor({**RECURRENT, "attention": "none"}))["attentions"] == []


@pytest.mark.parametrize(("method", "width"), [("beam", 3), ("greedy", 1)])
def test_the_search_is_that_of_the_recipe(method, width):
    decoding = {"method": method, "length_penalty": 0.3, "min_length": 2}
    if method == "beam":
        decoding["beam_size"] = 3
    ours = predictor(RECURRENT, decoding=decoding)
    search = pack_model(ours)["search"]
    assert (search["beam_size"], search["length_penalty"], search["min_length"]) == (width, 0.3, 2)
    assert search["forbidden"] == [0, 1, 2]
    assert pack_model(ours, beam_size=7)["search"]["beam_size"] == 7


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_subwords_have_scores_and_what_is_no_text_has_none(kind):
    ours = predictor(TRANSFORMER, tokenizer={"type": kind, "may_shrink": True})
    packed = pack_model(ours)["source"]
    assert pack_model(ours)["target"] is None
    scores = np.frombuffer(base64.b64decode(packed["scores"]), "<f4")
    tokenizer = ours.tokenizer.source
    assert packed["pieces"] == tokenizer.names
    known = tokenizer.scores
    for piece, score in zip(packed["pieces"], scores, strict=True):
        if (text := piece.replace("▁", " ")) in known:
            assert score == np.float32(known[text]), piece
        else:
            assert np.isnan(score), piece
    assert packed["pieces"][packed["first_byte"]] == "<0x00>"


def test_the_page_holds_the_model_and_requests_nothing():
    page = live_page(predictor(TRANSFORMER), ["我爱中国", "</script><!--"])
    script = re.search(r'<script type="application/json" id="regard-model">(.*?)</script>', page)
    packed = json.loads(script[1])
    assert packed["texts"] == ["我爱中国", "</script><!--"]
    assert packed["kind"] == "transformer"
    assert "connect-src" not in page
    assert not re.search(r"\b(?:fetch|XMLHttpRequest|WebSocket|EventSource|import)\(", page)


@pytest.mark.parametrize(
    ("model", "sections", "message"),
    [
        (
            {"type": "conv_seq2seq"},
            {},
            r"run must be of a translator .* got translation by conv_seq2seq",
        ),
        (
            {**RECURRENT, "copy": True},
            {},
            "model.copy must be left out .* got True. Leave out --live",
        ),
        ({**RECURRENT, "attention": "mixture"}, {}, "model.attention must be left out .*'mixture'"),
        (RECURRENT, {"decoding": {"method": "sample"}}, "decoding.method must be left out"),
        (RECURRENT, {"decoding": {"avoid": ["love"]}}, "decoding.avoid must be left out"),
        (RECURRENT, {"decoding": {"no_repeat_ngram": 3}}, "decoding.no_repeat_ngram must be"),
    ],
)
def test_what_the_page_cannot_do_is_refused(model, sections, message):
    with pytest.raises(SettingError, match=message):
        pack_model(predictor(model, **sections))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"head": {"ngram_scores": True}}, "model.parts must be left out .* got 'bag'"),
        ({"model": {"type": "convolutional"}}, "got classification by convolutional"),
    ],
)
def test_a_classifier_of_another_kind_is_refused(table, message):
    whole = {"task": "classification", "tokenizer": {"type": "words"}}
    whole |= {"model": {"type": "bag", "parts": "bag"}, "data": {"parts": "ngrams"}, **table}
    if "head" not in table:
        del whole["data"]
    known = [LabelledText(text, label, None, "test") for text, label in ("ab", "cd")]
    with pytest.raises(SettingError, match=message):
        pack_model(untrained(whole, known))


def test_a_large_model_is_refused(monkeypatch):
    ours = predictor(RECURRENT)
    count = sum(parameter.numel() for parameter in ours.model.parameters())
    monkeypatch.setattr(live, "MOST_WEIGHTS", count)
    live_page(ours)
    monkeypatch.setattr(live, "MOST_WEIGHTS", count - 1)
    message = f"model must have at most {count - 1:,} weights to live in a page; got {count:,}"
    with pytest.raises(SettingError, match=message):
        live_page(ours)
    monkeypatch.undo()
    monkeypatch.setattr(live, "MOST_BYTES", 1000)
    with pytest.raises(SettingError, match=r"page must take at most 1,000 bytes; got \d"):
        live_page(ours)
