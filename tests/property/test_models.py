"""Laws that every model keeps, whatever its settings."""

from copy import deepcopy
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.models import MODELS

VOCAB, BOS = 19, 2
LAYERS = {"num_encoder_layers": 2, "num_decoder_layers": 2}
SIZES = {
    "transformer": {"model_dim": 12, "num_heads": 3, "ffn_dim": 17, **LAYERS},
    "conv_seq2seq": {"embed_dim": 6, "hidden_dim": 10, **LAYERS},
    "rnn_seq2seq": {"embed_dim": 6, "hidden_dim": 10, "attention_dim": 7, "num_layers": 2},
}
KINDS = {
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
every_kind = pytest.mark.parametrize("kind", sorted(KINDS))
few = settings(deadline=None, max_examples=3)


@cache
def model(kind):
    torch.manual_seed(1)
    config, architecture = MODELS[kind.split()[0]].config, MODELS[kind.split()[0]].load()
    made = architecture(
        config(**SIZES[kind.split()[0]] | KINDS[kind]),
        source_vocab=VOCAB,
        target_vocab=VOCAB,
        shared_vocab=True,
    )
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return made.eval()


@st.composite
def batches(draw):
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    B = draw(st.integers(1, 4))
    lengths = torch.tensor(draw(st.lists(st.integers(1, 6), min_size=B, max_size=B)))
    source = torch.randint(4, VOCAB, (B, int(lengths.max())), generator=generator)
    source[torch.arange(source.shape[1]) >= lengths[:, None]] = 0
    target = torch.randint(4, VOCAB, (B, draw(st.integers(1, 6))), generator=generator)
    target[:, 0] = BOS
    return source, lengths, target


def logits(kind, source, lengths, target):
    with torch.no_grad():
        states, auxiliary = model(kind)(source, lengths, target)
        assert auxiliary is None
        return model(kind).project(states)


def stepwise(kind, source, lengths, target):
    """Log-probabilities one token at a time."""
    with torch.no_grad():
        state = model(kind).start(source, lengths)
        rows = []
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
    assert_same(stepwise(kind, *batch), logits(kind, *batch).log_softmax(-1))


@every_kind
@few
@given(batches(), st.integers(1, 4), st.integers(1, 4))
def test_extra_padding_changes_nothing(kind, batch, more_source, more_target):
    source, lengths, target = batch
    B, T = target.shape
    # Not even what stands there: padding is what lengths say, not what the ids are.
    longer = torch.cat([source, torch.full((B, more_source), 7)], 1)
    later = torch.cat([target, torch.full((B, more_target), 7)], 1)
    assert_same(logits(kind, longer, lengths, later)[:, :T], logits(kind, *batch))


@every_kind
@few
@given(batches())
def test_a_row_does_not_see_the_others(kind, batch):
    source, lengths, target = batch
    together = logits(kind, *batch)
    for row, length in enumerate(lengths.tolist()):
        alone = logits(kind, source[row : row + 1, :length], lengths[row : row + 1], target[[row]])
        assert_same(alone[0], together[row])


@every_kind
@few
@given(batches(), st.integers(0, 5))
def test_a_prefix_alone_is_the_prefix_of_the_whole(kind, batch, cut):
    source, lengths, target = batch
    T = min(cut + 1, target.shape[1])
    assert_same(logits(kind, source, lengths, target[:, :T]), logits(kind, *batch)[:, :T])


@every_kind
@few
@given(batches(), st.data())
def test_selected_rows_go_on_as_if_they_had_been_alone(kind, batch, data):
    source, lengths, target = batch
    rows = torch.tensor(data.draw(st.lists(st.integers(0, len(source) - 1), min_size=1)))
    with torch.no_grad():
        _, state = model(kind).step(target[:, 0], model(kind).start(source, lengths))
        found, after = model(kind).step(target[rows, -1], state.select(rows))
        expected, whole = model(kind).step(target[:, -1], state)
        assert_same(found, expected[rows])
        again, _ = model(kind).step(target[rows, 0], after)
        assert_same(again, model(kind).step(target[:, 0], whole)[0][rows])


@every_kind
@pytest.mark.parametrize("in_half", [False, True], ids=["whole", "half precision"])
def test_every_parameter_learns(kind, in_half):
    # In training, where auxiliary losses are.
    made = deepcopy(model(kind)).train()
    source = torch.randint(4, VOCAB, (3, 5))
    lengths, target = torch.tensor([5, 2, 4]), torch.randint(4, VOCAB, (3, 6))
    with torch.autocast("cpu", torch.bfloat16, enabled=in_half):
        states, auxiliary = made(source, lengths, target)
        loss = made.project(states).float().square().sum()
    (loss if auxiliary is None else loss + auxiliary).backward()
    still = [n for n, p in made.named_parameters() if p.grad is None or not p.grad.any()]
    # With embeddings as values nothing else of the encoder's is unused: keys are made of it.
    assert still == []
