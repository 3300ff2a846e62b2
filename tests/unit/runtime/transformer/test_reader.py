"""A prepared encoder gives its head what the encoder gives, and so do models that have one."""

import pytest
import torch
from tests.cases import two_by_two

from regard.attention import observe
from regard.errors import ShapeError
from regard.interop import edit
from regard.kernels import threads as kernel_threads
from regard.models import (
    Classifier,
    ClassifierConfig,
    Encoder,
    EncoderConfig,
    MultipleChoice,
    SpanFinder,
    SpanFinderConfig,
    Tagger,
    TaggerConfig,
)
from regard.runtime import in_precision, prepared
from regard.runtime.transformer import encoder as encoders
from regard.runtime.transformer.reader import PreparedReader

from ..conftest import VOCAB, shaken

pytestmark = pytest.mark.usefixtures("as_users_have_it")

OPTIONS = {
    "norm": ["pre", "post"],
    "norm_kind": ["layer", "rms"],
    "activation": ["relu", "gelu", "gelu_tanh", "swiglu"],
    "positions": ["sinusoidal", "learned", "rotary"],
    "norm_eps": [1e-12, 0.03],
    "num_segments": [0, 2],
    "num_layers": [1, 2],
    "num_heads": [2, 3],
}
LENGTHS = [[7, 3, 5, 1, 7], [17, 9, 20], [90, 0, 200, 61, 33]]


def encoder(*, num_features=0, parts_vocab=0, **options):
    sizes = {"model_dim": 24, "num_heads": 3, "num_layers": 2, "ffn_dim": 29, "max_length": 250}
    config = EncoderConfig(**{**sizes, **options})
    tables = {"parts_vocab": parts_vocab, "num_features": num_features}
    return shaken(Encoder(config, vocab_size=VOCAB, **tables))


def random_ids(lengths):
    lengths = torch.tensor(lengths)
    return torch.randint(4, VOCAB, (len(lengths), int(lengths.max()))), lengths


@torch.no_grad()
def check_reads(runtime, reader, ids, lengths, atol=3e-5, **inputs):
    """States of what is no padding; of padding zeros."""
    states, expected = runtime(ids, lengths, **inputs), reader(ids, lengths, **inputs)
    real = torch.arange(ids.shape[1]) < lengths[:, None]
    torch.testing.assert_close(states[real], expected[real], atol=atol, rtol=0)
    assert states[~real].eq(0).all()


@pytest.fixture
def calls(monkeypatch):
    calls, read = [], encoders.EncoderLoop.__call__
    monkeypatch.setattr(
        encoders.EncoderLoop, "__call__", lambda *all: calls.append(all) or read(*all)
    )
    return calls


@pytest.fixture(params=["blocks", "parts"])
def way(request, monkeypatch):
    """Blocks of texts, each of one thread, or parts of layers, which all threads share."""
    if request.param == "parts":
        monkeypatch.setattr(encoders, "MOST_BYTES", 0)
        monkeypatch.setattr(encoders, "BYTES_A_THREAD", 1)
    return request.param


@pytest.mark.parametrize("options", two_by_two(OPTIONS), ids=lambda each: str(each["positions"]))
@pytest.mark.usefixtures("way", "threads")
def test_it_reads_as_the_encoder_does_in_blocks_or_in_parts(options, calls):
    torch.set_num_threads(2)
    reader = encoder(**options)
    runtime = PreparedReader(reader)
    for lengths in LENGTHS:
        check_reads(runtime, reader, *random_ids(lengths))
    assert len(calls) == len(LENGTHS)


@pytest.mark.parametrize("name", ["segments", "parts", "features"])
def test_segments_parts_and_features_are_read(name, calls):
    options = {
        "segments": {},
        "parts": {"parts": "bag", "parts_vocab": 11},
        "features": {"num_features": 3},
    }[name]
    reader = encoder(**options)
    ids, lengths = random_ids([7, 3, 0, 12])
    inputs = {
        "segments": torch.randint(0, 2, ids.shape),
        "parts": torch.randint(0, 11, (*ids.shape, 4)),
        "features": torch.randn(*ids.shape, 3),
    }[name]
    check_reads(PreparedReader(reader), reader, ids, lengths, **{name: inputs})
    assert calls


def test_without_lengths_all_is_read():
    reader = encoder()
    ids, _ = random_ids([9, 9])
    with torch.no_grad():
        torch.testing.assert_close(PreparedReader(reader)(ids), reader(ids), atol=3e-5, rtol=0)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.usefixtures("way", "threads")
def test_what_a_text_gets_depends_neither_on_the_others_nor_on_the_threads(precision):
    runtime = PreparedReader(in_precision(encoder(), precision))
    ids, lengths = random_ids([31, 4, 120, 1, 8, 77, 200, 19, 64, 2] * 3)
    states = runtime(ids, lengths)
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        assert torch.equal(runtime(ids, lengths), states)
    for b, length in enumerate(lengths.tolist()):
        single = runtime(ids[b : b + 1, :length], lengths[b : b + 1])
        assert torch.equal(states[b, :length], single[0])


def test_texts_too_long_for_learned_positions_are_refused_as_by_the_encoder():
    reader = encoder()
    for each in (reader, PreparedReader(reader)):
        with pytest.raises(ShapeError, match="250"):
            each(*random_ids([251, 3]))


def test_long_texts_are_read_by_the_encoder(calls):
    reader = encoder(positions="rotary")
    check_reads(PreparedReader(reader), reader, *random_ids([1025, 1025]))
    assert not calls


def test_observers_and_edits_reach_the_encoder(calls):
    reader = encoder()
    runtime, inputs, observed = PreparedReader(reader), random_ids([5, 3]), []
    with torch.no_grad():
        with observe(observed.append):
            runtime(*inputs)
        assert [call.kind for call in observed] == ["encoder"] * 2
        assert not calls
        expected = runtime(*inputs)
        with edit(runtime) as edits:
            edits.mute(0)
            assert not torch.allclose(runtime(*inputs)[0], expected[0], atol=1e-4)
    assert len(calls) == 1


HEADS = {
    "classifier": lambda reader: Classifier(
        ClassifierConfig(pooling="query"), reader, num_classes=3
    ),
    "tagger": lambda reader: Tagger(TaggerConfig(crf=True), reader, num_tags=3),
    "span_finder": lambda reader: SpanFinder(SpanFinderConfig(), reader),
}


@pytest.mark.parametrize("head", list(HEADS))
def test_models_whose_encoder_reads_for_a_head_are_prepared(head, calls):
    model = HEADS[head](encoder()).eval()
    runtime, inputs = prepared(model), random_ids([5, 12, 3])
    assert type(runtime) is type(model)
    assert isinstance(runtime.reader, PreparedReader)
    assert isinstance(model.reader, Encoder)  # the model itself is left alone
    with torch.no_grad():
        outputs, expected = runtime(*inputs), model(*inputs)
    if head == "span_finder":
        outputs, expected = torch.stack(outputs), torch.stack(expected)
    real = torch.arange(12) < inputs[1][:, None]
    if head == "tagger":
        outputs, expected = outputs[real], expected[real]
    torch.testing.assert_close(outputs, expected, atol=1e-4, rtol=0)
    assert calls


def test_choices_are_read_by_what_is_prepared(calls):
    model = MultipleChoice(ClassifierConfig(), encoder()).eval()
    ids, lengths = torch.randint(4, VOCAB, (2, 3, 7)), torch.tensor([[7, 2, 3], [4, 5, 0]])
    with torch.no_grad():
        torch.testing.assert_close(
            prepared(model)(ids, lengths), model(ids, lengths), atol=1e-4, rtol=0
        )
    assert calls


@torch.no_grad()
@pytest.mark.usefixtures("threads")
def test_large_layers_are_read_in_parts_of_many_tokens(calls):
    torch.set_num_threads(2)
    model = HEADS["tagger"](encoder(num_heads=4, num_layers=6, model_dim=384, ffn_dim=1536)).eval()
    runtime, (ids, lengths) = prepared(model), random_ids([90, 4, 249] * 9)
    assert runtime.reader._loop._bytes > encoders.MOST_BYTES
    assert lengths.sum() > encoders._TOKENS_OF_LARGE
    check_reads(runtime.reader, model.reader, ids, lengths, atol=3e-4)
    assert calls


@torch.no_grad()
@pytest.mark.usefixtures("threads")
def test_without_gnus_openmp_threads_have_blocks_of_texts_whatever_the_weights(monkeypatch):
    monkeypatch.setattr(encoders, "MOST_BYTES", 0)
    monkeypatch.setattr(kernel_threads, "_begin", lambda: 0)
    torch.set_num_threads(2)
    blocks, share_out = [], encoders.parallel_blocks
    monkeypatch.setattr(
        encoders, "parallel_blocks", lambda *all: blocks.append(all[0]) or share_out(*all)
    )
    reader = encoder()
    for count in (3, 20):
        check_reads(PreparedReader(reader), reader, *random_ids([9] * count))
    assert blocks == [20]
