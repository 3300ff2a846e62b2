"""Vectors are the mean of the reader's states, whatever else is in the batch."""

import pytest
import torch
from tests.end_to_end.tiny_tasks import TINY
from tests.unit.inference.conftest import untrained

from regard.errors import SettingError
from regard.inference.embedding import Embedder
from regard.tasks.labels.classification import LabelledText
from regard.text import Pair
from regard.text.reading.tagged import TaggedWords

TEXTS = ["Anna sat in the garden .", "Bert sat", "Cleo sat by the river for 3 hours , alone ."]


def predictor(name, **model):
    """A model that has learned nothing, with the words of a few lines."""
    tiny = TINY[name]
    table = {"task": name, **tiny.table}
    table["model"] = model or tiny.table["model"]
    return untrained(table, [learned(name, text) for text in TEXTS])


def learned(name, text):
    if name == "translation":
        return Pair(text, text, (text,), "x:1")
    if name == "tagging":
        words = tuple(text.split())
        return TaggedWords(words, tuple("A" if len(word) > 3 else "B" for word in words), "x:1")
    return LabelledText(text, "good" if "Bert" in text else "bad", None, "x:1")


SMALL = {"model_dim": 8, "num_heads": 2, "ffn_dim": 8}
WRITERS = {
    "transformer": {
        "type": "transformer",
        **SMALL,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
    },
    "rnn": {"type": "rnn_seq2seq", "embed_dim": 8, "hidden_dim": 8, "attention_dim": 4},
}


def requests_of(model, texts):
    return [model.task.request(text, "x:1") for text in texts]


@pytest.mark.parametrize("name", ["classification", "tagging", *WRITERS])
def test_a_text_has_the_same_vector_alone_and_among_others(name):
    model = predictor("translation", **WRITERS[name]) if name in WRITERS else predictor(name)
    embedder = Embedder(model)
    batched = embedder.embed(requests_of(model, TEXTS))
    for text, one in zip(TEXTS, batched, strict=True):
        (single,) = embedder.embed(requests_of(model, [text]))
        assert single.vector == pytest.approx(one.vector, rel=1e-4, abs=1e-5)
    assert len({each.vector for each in batched}) == 3


def test_it_is_the_mean_of_the_states():
    model = predictor("classification")
    (embedding,) = Embedder(model).embed(requests_of(model, TEXTS[:1]))
    (encoded,) = model.task.encode(requests_of(model, TEXTS[:1]))
    with torch.no_grad():
        batch = model.task.collate([encoded])
        states = model.model.eval().reader(batch["ids"], batch["lengths"])
    assert embedding.vector == pytest.approx(states[0].mean(0).tolist(), rel=1e-5)
    assert embedding.to_dict() == {"embedding": embedding.vector}
    assert [float(value) for value in embedding.text().split()] == list(embedding.vector)


def test_nothing_has_an_empty_vector_and_a_long_text_that_of_its_parts():
    model = predictor("translation", **WRITERS["transformer"])
    long = " . ".join(["Anna sat in the garden"] * 12)
    empty, whole = Embedder(model).embed([Pair("", "", (), "x"), Pair(long, "", (), "x")])
    assert empty.vector == ()
    assert len(model.sequence_task.encoded_parts(long)) > 1
    assert len(whole.vector) == 8


def test_a_model_that_reads_no_text_by_itself_is_refused():
    tiny = {"embed_dim": 8, "hidden_dim": 8, "num_encoder_layers": 1, "num_decoder_layers": 1}
    with pytest.raises(SettingError, match=r"--embed must be for a run .*; got translation with c"):
        Embedder(predictor("translation", type="conv_seq2seq", **tiny))
