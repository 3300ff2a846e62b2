import pytest
import torch
from tests.looking import look_into
from tests.unit.inference.conftest import untrained

from regard.decoding.hypothesis import Alignment
from regard.text import Pair, TokenizerConfig, train_pair_tokenizer
from regard.viewer.example import View

TEXTS = ["the old king had a son", "the son ran to a mill", "the mill was old"]
MODELS = {
    "rnn_seq2seq": {"embed_dim": 6, "hidden_dim": 5, "attention_dim": 7, "output_bias": False},
    "transformer": {
        "model_dim": 8,
        "num_heads": 2,
        "ffn_dim": 11,
        "num_encoder_layers": 1,
        "num_decoder_layers": 2,
    },
}
COPYING = {"rnn_seq2seq": 0, "transformer": 2}


def make_predictor(model, *, copy=True):
    table = {
        "task": "generation",
        "data": {"max_length": 16},
        "tokenizer": {"type": "words"},
        "model": {"type": model, "copy": copy, **MODELS[model]},
        "decoding": {"method": "greedy", "max_ratio": 0.5, "min_length": 4},
    }
    return untrained(table, [Pair(text, text, (text,), "") for text in TEXTS])


@pytest.mark.parametrize("model", sorted(MODELS))
def test_alignments_of_a_model_that_copies_are_the_weights_it_copies_by(model):
    predictor = make_predictor(model)
    (output,) = predictor.translate([TEXTS[0]], attention=True)[0]
    look = predictor.attention(TEXTS[0], output.tokens)
    expected = look.cross(layer=COPYING[model])[:-1]
    assert torch.allclose(output.alignment.weights, expected, atol=1e-5)
    if model == "transformer":
        assert not torch.allclose(output.alignment.weights, look.cross()[:-1], atol=1e-5)
    others = predictor.translate([TEXTS[0]], attention=True, layers=[0])[0][0].alignment
    assert torch.allclose(others.weights, look.cross(layer=0)[:-1], atol=1e-5)


@pytest.mark.parametrize("model", sorted(MODELS))
def test_a_page_opens_with_what_was_copied(model):
    opening = look_into(make_predictor(model), [TEXTS[0]]).opening
    assert opening == View(kind="cross", layer=COPYING[model], head="mean")
    assert look_into(make_predictor(model, copy=False), [TEXTS[0]]).opening is None
    hidden = look_into(make_predictor("transformer"), [TEXTS[0]], layers=[0]).opening
    assert hidden is None


def test_a_word_is_a_copy_of_the_same_word_that_was_looked_at_most():
    tokenizer = train_pair_tokenizer(TEXTS, TEXTS, TokenizerConfig(type="words"))
    source, output = "the king had a king", "king ran a"
    weights = torch.tensor(
        [[0.4, 0.1, 0.2, 0.0, 0.2, 0.1], [1, 0, 0, 0, 0, 0], [0.9, 0, 0, 0.1, 0, 0]]
    )
    tokens = tuple(tokenizer.target.encode(output))
    alignment = Alignment(source, tokens, weights, 5, tokenizer, is_copying=True)
    assert alignment.copied_from() == [4, None, 3]
    assert alignment.copies() == [("king", 15), ("ran", None), ("a", 13)]
    whole = tuple(tokenizer.target.encode("ran to the king had"))
    eye = torch.tensor([[0.0] * 6, [0.0] * 6, *torch.eye(6)[:3].tolist()])
    joined = Alignment(source, whole, eye, 5, tokenizer, is_copying=True)
    assert joined.copies() == [("ran to", None), ("the king had", 0)]


@pytest.mark.parametrize("model", sorted(MODELS))
def test_json_says_what_was_copied_from_where(model):
    predictor = make_predictor(model)
    (answer,) = predictor.answers([predictor.task.request(TEXTS[0], "")], attention=True)
    record = answer.to_dict()
    assert len(record["copied_from"]) == len(record["output_tokens"])
    for position, token in zip(record["copied_from"], record["output_tokens"], strict=True):
        assert position is None or record["source_tokens"][position] == token
    plain = make_predictor(model, copy=False)
    (without_copy,) = plain.answers([plain.task.request(TEXTS[0], "")], attention=True)
    assert "copied_from" not in without_copy.to_dict()
