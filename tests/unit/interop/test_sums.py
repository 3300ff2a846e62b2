"""Logits and scores of a page, by what wrote to the residual stream."""

import pytest
import torch
from tests.unit.interop.test_explaining import CAUSAL, TEXT, ids_of, look, make
from tests.unit.interop.tiny_folders import byte_tokenizer

import regard as rg
from regard.errors import DataError, SettingError
from regard.viewer import Document

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def tokenizer():
    return byte_tokenizer()


@pytest.fixture(scope="module")
def model():
    made = make("GPT2LMHeadModel", *CAUSAL["GPT2LMHeadModel"])
    torch.manual_seed(1)
    for each in made.parameters():
        each.data = torch.randn_like(each) * 0.3 + (each.dim() == 1)
    return made


def test_a_page_has_the_sums_of_python(model, tokenizer):
    stream = look(model, tokenizer, scores=[(1, 2, 4, 2)]).stream
    ids = ids_of(tokenizer)
    made = rg.logit_attribution(model, ids)
    (logit,) = stream.logits
    assert stream.parts == tuple(part.name for part in made.parts)
    assert logit.values == pytest.approx(made.values.tolist(), rel=1e-3)
    assert sum(logit.values) == pytest.approx(logit.total, rel=1e-2)
    assert logit.position == ids.shape[1] - 1
    (score,) = stream.scores
    parts = rg.decompose_score(model, ids, layer=1, head=2, query=4, key=2)
    assert (score.kind, score.layer, score.head, score.query, score.key) == ("decoder", 1, 2, 4, 2)
    assert (score.score, score.weight) == pytest.approx((parts.score, parts.weight), rel=1e-3)
    assert score.rows == ("token", "position", "layer 0 heads", "layer 0 feed-forward", "biases")
    grouped = sum(map(sum, score.values))
    assert grouped == pytest.approx(parts.sum, rel=1e-2)
    heads = [n for n, part in enumerate(parts.query_parts) if part.kind == "head"]
    assert score.values[2][0] == pytest.approx(float(parts.values[heads, 0].sum()), rel=1e-3)
    one, other, value = parts.top(1)[0]
    assert score.pairs[0] == (one.name, other.name, pytest.approx(value, rel=1e-3))


def test_each_layer_s_strongest_link_is_taken_apart_where_it_is_cheap(model, tokenizer):
    shown = rg.look(model, tokenizer, TEXT)
    scores = shown.document.examples[0].stream.scores
    assert [one.layer for one in scores] == [0, 1, 2]
    ids = ids_of(tokenizer)
    with torch.no_grad(), rg.watch(model, keep=True) as seen:
        model(ids)
    for one in scores:
        weights = seen.rows(one.layer, range(ids.shape[1]))[0]
        assert one.weight == pytest.approx(float(weights.max()), rel=1e-3)
        assert one.weight == pytest.approx(float(weights[one.head, one.query, one.key]), rel=1e-3)
    assert Document.from_json(shown.document.to_json()) == shown.document
    named = look(model, tokenizer, scores=[(0, 1)]).stream.scores
    assert [(one.layer, one.head) for one in named] == [(0, 1)]
    assert look(model, tokenizer, attribute=[]).stream is None


def test_a_model_without_logits_has_scores(tokenizer):
    model = make("GPT2LMHeadModel", *CAUSAL["GPT2LMHeadModel"]).transformer
    stream = look(model, tokenizer).stream
    assert (stream.logits, len(stream.scores)) == ((), 3)


def test_scores_that_are_not_there_are_named(model, tokenizer):
    with pytest.raises(SettingError, match=r"scores must be of heads that are shown; got 7\.0"):
        look(model, tokenizer, scores=[(7, 0)])
    with pytest.raises(DataError, match=r"tokens of the text, from 0; got 2\.5 of head 0\.1"):
        look(model, tokenizer, scores=[(0, 1, 2, 5)])
    with pytest.raises(DataError, match=r"of the text, from 0; got -1\.0"):
        look(model, tokenizer, scores=[(0, 1, -1, 0)])
    with pytest.raises(SettingError, match=r"\(layer, head, query, key\); got \(0, 1, 2\)"):
        look(model, tokenizer, scores=[(0, 1, 2)])
    text = look(model, tokenizer)
    (score, *_) = text.stream.scores
    with pytest.raises(DataError, match="scores must be of"):
        rg.viewer.Example(
            source="",
            output="",
            source_tokens=(),
            output_tokens=(),
            stream=rg.viewer.StreamSums(scores=(score,)),
        )
    with pytest.raises(DataError, match="one for each of 0 parts"):
        rg.viewer.StreamSums(logits=text.stream.logits)


def test_all_kinds_of_attention_of_a_writer(tokenizer):
    stream = rg.load("tatoeba-zh-en").look("我爱中国", scores=[(1, 0)]).document.examples[0].stream
    assert [one.kind for one in stream.scores] == ["encoder", "decoder", "cross"]
    assert [one.output for one in stream.logits] == list(range(len(stream.logits)))
    for one in stream.logits:
        assert sum(one.values) == pytest.approx(one.total, rel=5e-3)
