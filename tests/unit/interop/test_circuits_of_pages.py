"""Circuits of heads and strongest neurons on a page, beside those of Python."""

import pytest
import torch
from tests.unit.interop.test_explaining import CAUSAL, TEXT, ids_of, look, make
from tests.unit.interop.tiny_folders import byte_tokenizer

import regard as rg
from regard.errors import SettingError
from regard.interop.pages import circuits

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


def test_a_page_has_the_circuits_of_python(model, tokenizer):
    twice = "the cat sat on the mat"
    (one,) = look(model, tokenizer, twice, circuits=[(1, 2)]).circuits
    ids = ids_of(tokenizer, twice)
    made = rg.head_circuits(model, ids, layer=1, head=2)
    different = list(dict.fromkeys(ids[0].tolist()))
    assert len(different) < ids.shape[1]  # a word stands twice, and is listed once
    rows = [ids[0].tolist().index(each) for each in different]
    assert (one.kind, one.layer, one.head) == ("decoder", 1, 2)
    assert one.queries == one.keys
    assert len(one.queries) == len(different)
    for row, scores in zip(rows, one.scores, strict=True):
        assert scores == pytest.approx(made.scores[row, rows].tolist(), rel=1e-3)
    assert one.key_scores == pytest.approx(made.key_scores[rows].tolist(), rel=1e-3)
    assert one.copying == pytest.approx(made.copying, rel=1e-3)
    for name in ("liked", "promoted", "suppressed"):
        for row, pairs in zip(rows, getattr(one, name), strict=True):
            values = getattr(made, name).values[row].tolist()
            assert [value for _, value in pairs] == pytest.approx(values[: len(pairs)], rel=1e-3)
    assert [rank for _, rank in one.own] == made.own_rank[rows].tolist()


def test_heads_whose_scores_are_taken_apart_have_circuits(model, tokenizer, monkeypatch):
    example = look(model, tokenizer)
    order = sorted(example.stream.scores, key=lambda one: -one.weight)
    heads = [(one.layer, one.head) for one in order]
    assert [(one.layer, one.head) for one in example.circuits] == heads
    assert all(one.liked for one in example.circuits)
    monkeypatch.setattr(circuits, "_PRODUCTS", 1)
    example = look(model, tokenizer)
    assert not any(one.liked for one in example.circuits)
    assert all(one.promoted for one in example.circuits)
    named = look(model, tokenizer, scores=[(0, 1)])
    assert [(one.layer, one.head) for one in named.circuits] == [(0, 1)]
    assert look(model, tokenizer, attribute=[]).circuits == ()


def test_a_page_has_the_strongest_neurons(model, tokenizer, monkeypatch):
    example = look(model, tokenizer)
    ids = ids_of(tokenizer)
    made = rg.feed_forward_neurons(model, ids, top=3, words=4)
    strongest = made.strongest(len(example.feed_forward))
    assert len(example.feed_forward) == min(300, 3 * 3 * ids.shape[1])
    for one, other in zip(example.feed_forward[:9], strongest, strict=False):
        found = (one.layer, one.position, one.number)
        assert found == (other.layer, other.position, other.number)
        assert (one.size, one.activation) == pytest.approx((other.size, other.activation), rel=1e-3)
        for pairs, wanted in ((one.promoted, other.promoted), (one.suppressed, other.suppressed)):
            values = [value for _, value in wanted]
            assert [value for _, value in pairs] == pytest.approx(values, rel=1e-3)
    monkeypatch.setattr(circuits, "_MOST", 5)
    few = look(model, tokenizer).feed_forward
    assert few == example.feed_forward[:5]


def test_a_head_that_is_not_there_is_named(model, tokenizer):
    with pytest.raises(SettingError, match=r"circuits must be of heads that there are.*got 1\.9"):
        look(model, tokenizer, circuits=[(1, 9)])
    with pytest.raises(SettingError, match=r"got 7\.0"):
        look(model, tokenizer, circuits=[(7, 0)])


def test_a_translator_reads_one_vocabulary_and_writes_another():
    example = rg.load("tatoeba-zh-en").look("我爱中国", circuits=[(1, 1)]).document.examples[0]
    shown = rg.load("tatoeba-zh-en").look("我爱中国").document.examples[0].circuits
    assert sorted(one.kind for one in shown) == ["cross", "decoder", "encoder"]
    encoder, decoder, cross = example.circuits
    assert [one.kind for one in example.circuits] == ["encoder", "decoder", "cross"]
    assert encoder.promoted == ()
    assert encoder.queries == cross.keys == ("我", "爱", "中", "国")
    assert decoder.queries[1:] == cross.queries[1:] == ("▁I", "▁love", "▁China", ".")
    assert cross.promoted[1][0][0] == "▁love"  # 爱
    assert (cross.own, cross.copying) == ((), None)
    assert all(one.promoted for one in example.feed_forward if one.kind == "decoder")
    assert not any(one.promoted for one in example.feed_forward if one.kind == "encoder")


def test_a_classifier_names_its_labels_and_tokens(tokenizer):
    labels = {0: "bad", 1: "good", 2: "neither"}
    config = {"num_labels": 3, "id2label": labels}
    model = make("BertForSequenceClassification", "BertConfig", config)
    (one,) = look(model, tokenizer, circuits=[(1, 1)]).circuits
    assert all({name for name, _ in pairs} == set(labels.values()) for pairs in one.promoted)
    assert all(len(name) <= len(TEXT) for name in one.queries)
    assert one.copying is None
