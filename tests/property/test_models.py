"""Laws that every translator and every language model keeps, whatever its settings."""

from copy import deepcopy
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention import observe
from regard.errors import ShapeError
from regard.models import LANGUAGE_MODELS, MODELS

VOCAB, BOS = 19, 2
LAYERS = {"num_encoder_layers": 2, "num_decoder_layers": 2}
SIZES = {
    "transformer": {"model_dim": 12, "num_heads": 3, "ffn_dim": 17, **LAYERS},
    "conv_seq2seq": {"embed_dim": 6, "hidden_dim": 10, **LAYERS},
    "rnn_seq2seq": {"embed_dim": 6, "hidden_dim": 10, "attention_dim": 7, "num_layers": 2},
    "decoder": {"model_dim": 12, "num_heads": 2, "num_layers": 2, "ffn_dim": 17, "max_length": 16},
    "recurrent": {"embed_dim": 6, "hidden_dim": 10, "num_layers": 2},
}
TRANSLATORS = {
    "conv_seq2seq": {"kernel_size": 5},
    "conv_seq2seq plain": {"weight_norm": False, "kernel_size": 1, "tie_embeddings": False},
    "transformer": {},
    "transformer pre": {"norm": "pre", "activation": "gelu"},
    "transformer learned": {"positions": "learned", "tie_embeddings": "none"},
    "transformer embeddings": {"values": "embeddings"},
    "transformer rotary": {"positions": "rotary", "num_heads": 2, "num_key_heads": 1},
    "transformer additive": {"score": "additive"},
    "transformer relative": {"positions": "relative", "window": 2},
    "transformer t5": {"positions": "t5", "norm_kind": "rms", "activation": "swiglu"},
    "transformer alibi": {"positions": "alibi", "window": 1, "norm": "pre", "norm_kind": "rms"},
    "transformer none": {"positions": "none", "norm_kind": "batch"},
    "transformer batch": {"norm": "pre", "norm_kind": "batch"},
    "transformer copy": {"copy": True},
    "rnn_seq2seq rnn": {"cell": "rnn"},
    "rnn_seq2seq gru": {"cell": "gru", "values": "embeddings"},
    "rnn_seq2seq lstm": {"cell": "lstm", "tie_embeddings": False},
    "rnn_seq2seq fixed": {"attention": "none", "cell": "lstm"},
    "rnn_seq2seq luong dot": {"decoder": "luong", "attention": "dot", "cell": "lstm"},
    "rnn_seq2seq luong general": {"decoder": "luong", "attention": "general"},
    "rnn_seq2seq luong location": {"decoder": "luong", "attention": "location"},
    "rnn_seq2seq local-m": {"local": "monotonic", "reach": 1, "attention": "general"},
    "rnn_seq2seq local-p": {"local": "predictive", "reach": 2, "decoder": "luong"},
    "rnn_seq2seq hard": {"hard": True},
    "rnn_seq2seq mixture": {"attention": "mixture", "num_gaussians": 3},
    "rnn_seq2seq coverage": {"coverage": True, "attention": "dot"},
    "rnn_seq2seq copy": {"copy": True, "coverage": True},
    "rnn_seq2seq luong copy": {"copy": True, "decoder": "luong", "attention": "general"},
}
WRITERS = {
    "decoder": {},
    "decoder post": {"norm": "post", "activation": "gelu_tanh", "tie_embeddings": False},
    "decoder rotary": {"positions": "rotary", "num_key_heads": 1},
    "decoder alibi": {"positions": "alibi", "activation": "swiglu", "norm_kind": "rms"},
    "decoder sinusoidal": {"positions": "sinusoidal", "max_length": 2},
    "decoder window": {"window": 2},
    "decoder rotary window": {"positions": "rotary", "window": 3},
    "recurrent rnn": {"cell": "rnn", "activation": "relu", "num_layers": 1},
    "recurrent gru": {"cell": "gru", "hidden_dim": 6},
    "recurrent lstm": {"cell": "lstm", "tie_embeddings": False},
}
KINDS = TRANSLATORS | WRITERS
every_kind = pytest.mark.parametrize("kind", sorted(KINDS))
every_translator = pytest.mark.parametrize("kind", sorted(TRANSLATORS))
every_writer = pytest.mark.parametrize("kind", sorted(WRITERS))
few = settings(max_examples=3)


@cache
def model(kind):
    torch.manual_seed(1)
    name = kind.split()[0]
    entry = (MODELS | LANGUAGE_MODELS)[name]
    sizes = {"source_vocab": VOCAB, "target_vocab": VOCAB, "shared_vocab": True}
    if kind in WRITERS:
        sizes = {"vocab_size": VOCAB}
    instance = entry.load()(entry.config(**SIZES[name] | KINDS[kind]), **sizes)
    for parameter in instance.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return instance.eval()


@st.composite
def batches(draw):
    """Sources or prompts, how long they are, and what is written after a beginning."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    B = draw(st.integers(1, 4))
    lengths = torch.tensor(draw(st.lists(st.integers(1, 6), min_size=B, max_size=B)))
    source = torch.randint(4, VOCAB, (B, int(lengths.max())), generator=generator)
    source[torch.arange(source.shape[1]) >= lengths[:, None]] = 0
    target = torch.randint(4, VOCAB, (B, draw(st.integers(1, 6))), generator=generator)
    target[:, 0] = BOS
    return source, lengths, target


def log_probs_of(kind, ids, lengths=None, target=None):
    """Log-probabilities after each token of a target, or of a whole text."""
    with torch.no_grad():
        states = model(kind)(ids, lengths, *(() if target is None else (target,)))
        if target is not None:
            states, auxiliary = states
            assert auxiliary is None
        return model(kind).project(states).log_softmax(-1)


def alone(kind, ids, target):
    """Log-probabilities of a target at once, by itself, without any padding."""
    if kind in TRANSLATORS:
        return log_probs_of(kind, ids[None], torch.tensor([len(ids)]), target[None])[0]
    # The first token given stands for the last of a prompt.
    return log_probs_of(kind, torch.cat([ids, target[1:]])[None])[0, len(ids) - 1 :]


@torch.no_grad()
def stepwise(kind, source, lengths, target):
    """Log-probabilities one token at a time."""
    state, rows = model(kind).start(source, lengths), []
    for token in target.unbind(1):
        log_probs, state = model(kind).step(token, state)
        rows.append(log_probs)
    return torch.stack(rows, 1)


def assert_same(one, other):
    torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@every_kind
@few
@given(batches())
def test_a_known_target_at_once_is_the_same_as_step_by_step(kind, batch):
    source, lengths, target = batch
    for log_probs, ids, length, tokens in zip(
        stepwise(kind, *batch), source, lengths.tolist(), target, strict=True
    ):
        assert_same(log_probs, alone(kind, ids[:length], tokens))


@every_writer
@few
@given(batches())
def test_without_a_prompt_the_first_token_counts(kind, batch):
    ids, lengths, _ = batch
    assert_same(stepwise(kind, ids[:, :0], 0 * lengths, ids), log_probs_of(kind, ids))


@every_translator
@few
@given(batches(), st.integers(1, 4), st.integers(1, 4))
def test_neither_padding_nor_other_rows_change_anything(kind, batch, more_source, more_target):
    source, lengths, target = batch
    B, T = target.shape
    # Not even what stands there: padding is what lengths say, not what the ids are.
    longer = torch.cat([source, torch.full((B, more_source), 7)], 1)
    later = torch.cat([target, torch.full((B, more_target), 7)], 1)
    for ids, tokens in ((source, target), (longer, later)):
        for row, log_probs in enumerate(log_probs_of(kind, ids, lengths, tokens)[:, :T]):
            assert_same(log_probs, alone(kind, source[row, : lengths[row]], target[row]))


@every_writer
@few
@given(batches(), st.integers(1, 9))
def test_padding_changes_nothing_whether_lengths_are_known_or_not(kind, batch, width):
    ids, lengths, _ = batch
    padded = torch.cat([ids, torch.full((len(ids), width), 7)], 1)
    for given_lengths in (None, lengths):
        log_probs = log_probs_of(kind, padded, given_lengths)
        for row, length in enumerate(lengths.tolist()):
            assert_same(log_probs[row, :length], log_probs_of(kind, ids[row : row + 1, :length])[0])


@every_translator
@few
@given(batches(), st.integers(0, 5))
def test_a_prefix_alone_is_the_prefix_of_the_whole(kind, batch, cut):
    source, lengths, target = batch
    T = min(cut + 1, target.shape[1])
    whole = log_probs_of(kind, *batch)
    assert_same(log_probs_of(kind, source, lengths, target[:, :T]), whole[:, :T])


@every_kind
@few
@given(batches(), st.data())
@torch.no_grad()
def test_selected_rows_continue_as_if_they_had_been_alone(kind, batch, data):
    source, lengths, target = batch
    rows = torch.tensor(data.draw(st.lists(st.integers(0, len(source) - 1), min_size=1)))
    state = model(kind).start(source, lengths)
    selected_state = state.select(rows)
    for position in (0, -1, 0):
        expected, state = model(kind).step(target[:, position], state)
        log_probs, selected_state = model(kind).step(target[rows, position], selected_state)
        assert_same(log_probs, expected[rows])


@every_kind
@pytest.mark.parametrize("in_half", [False, True], ids=["whole", "half precision"])
def test_every_parameter_learns(kind, in_half):
    # In training, where auxiliary losses are.
    instance, auxiliary = deepcopy(model(kind)).train(), None
    source, lengths = torch.randint(4, VOCAB, (3, 6)), torch.tensor([5, 2, 4])
    with torch.autocast("cpu", torch.bfloat16, enabled=in_half):
        if kind in TRANSLATORS:
            states, auxiliary = instance(source[:, :5], lengths, torch.randint(4, VOCAB, (3, 6)))
        else:
            states = instance(source)
        loss = instance.project(states).float().square().sum()
    (loss if auxiliary is None else loss + auxiliary).backward()
    without_gradient = [
        n for n, p in instance.named_parameters() if p.grad is None or not p.grad.any()
    ]
    # With embeddings as values nothing else of the encoder's is unused: keys are made of it.
    assert without_gradient == []


@every_writer
def test_an_observer_sees_every_layer_in_training_and_decoding(kind):
    instance, ids, calls = model(kind), torch.randint(4, VOCAB, (3, 5)), []
    with torch.no_grad(), observe(calls.append):
        instance(ids)
        instance.step(ids[:, 0], instance.start(ids, torch.tensor([5, 2, 3])))
    layers = 2 if kind.startswith("decoder") else 0
    assert [(each.kind, each.layer) for each in calls] == [
        ("decoder", i) for i in range(layers)
    ] * 3


@pytest.mark.parametrize("lengths", [[0, 3], [2, 6]])
@every_writer
def test_a_prompt_that_is_empty_or_longer_than_it_is_wide_is_refused(kind, lengths):
    with pytest.raises(ShapeError, match="prompt_lengths must be from 1 to 5, the columns of"):
        model(kind).start(torch.ones(2, 5, dtype=torch.long), torch.tensor(lengths))
