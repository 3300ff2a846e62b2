"""Laws that every language model keeps, whatever its settings."""

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention import observe
from regard.models import LANGUAGE_MODELS

VOCAB, BOS = 19, 2
SIZES = {
    "decoder": {"model_dim": 12, "num_heads": 2, "num_layers": 2, "ffn_dim": 17, "max_length": 16},
    "recurrent": {"embed_dim": 6, "hidden_dim": 10, "num_layers": 2},
}
KINDS = {
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
every_kind = pytest.mark.parametrize("kind", sorted(KINDS))
few = settings(deadline=None, max_examples=3)


@cache
def model(kind):
    torch.manual_seed(1)
    config, architecture = (
        LANGUAGE_MODELS[kind.split()[0]].config,
        LANGUAGE_MODELS[kind.split()[0]].load(),
    )
    made = architecture(config(**SIZES[kind.split()[0]] | KINDS[kind]), vocab_size=VOCAB)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return made.eval()


@st.composite
def batches(draw):
    """Texts, how long they are, and what comes after."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    B = draw(st.integers(1, 4))
    lengths = torch.tensor(draw(st.lists(st.integers(1, 6), min_size=B, max_size=B)))
    ids = torch.randint(4, VOCAB, (B, int(lengths.max())), generator=generator)
    more = torch.randint(4, VOCAB, (B, draw(st.integers(1, 4))), generator=generator)
    return ids, lengths, more


def predictions(kind, ids, lengths=None):
    with torch.no_grad():
        return model(kind).project(model(kind)(ids, lengths)).log_softmax(-1)


def assert_same(one, other):
    torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@every_kind
@few
@given(batches())
def test_a_continuation_step_by_step_is_the_whole_text_at_once(kind, batch):
    ids, lengths, more = batch
    with torch.no_grad():
        state = model(kind).start(ids, lengths)
        rows = []
        # The first token given stands for the last of each prompt.
        for token in (torch.full_like(lengths, BOS), *more.unbind(1)):
            log_probs, state = model(kind).step(token, state)
            rows.append(log_probs)
    for row, length in enumerate(lengths.tolist()):
        text = torch.cat([ids[row, :length], more[row]])
        want = predictions(kind, text[None])[0, length - 1 :]
        assert_same(torch.stack([each[row] for each in rows]), want)


@every_kind
@few
@given(batches())
def test_without_a_prompt_the_first_token_counts(kind, batch):
    ids, lengths, _ = batch
    with torch.no_grad():
        state = model(kind).start(ids[:, :0], 0 * lengths)
        for place, token in enumerate(ids.unbind(1)):
            log_probs, state = model(kind).step(token, state)
            assert_same(log_probs, predictions(kind, ids)[:, place])


@every_kind
@few
@given(batches(), st.integers(1, 9))
def test_padding_changes_nothing_whether_lengths_are_known_or_not(kind, batch, width):
    ids, lengths, _ = batch
    padded = torch.cat([ids, torch.full((len(ids), width), 7)], 1)
    for known in (None, lengths):
        found = predictions(kind, padded, known)
        for row, length in enumerate(lengths.tolist()):
            assert_same(found[row, :length], predictions(kind, ids[row : row + 1, :length])[0])


@every_kind
@few
@given(batches(), st.data())
def test_selected_rows_go_on_as_if_they_had_been_alone(kind, batch, data):
    ids, lengths, more = batch
    rows = torch.tensor(data.draw(st.lists(st.integers(0, len(ids) - 1), min_size=1)))
    with torch.no_grad():
        before = model(kind).start(ids, lengths)
        want, state = model(kind).step(more[:, 0], before)
        found, after = model(kind).step(more[rows, 0], before.select(rows))
        assert_same(found, want[rows])
        found, _ = model(kind).step(more[rows, -1], after)
        assert_same(found, model(kind).step(more[:, -1], state)[0][rows])


@every_kind
def test_every_parameter_learns(kind):
    made = model(kind)
    made.zero_grad()
    made.project(made(torch.randint(4, VOCAB, (3, 7)))).square().sum().backward()
    still = [n for n, p in made.named_parameters() if p.grad is None or not p.grad.any()]
    assert still == []
    made.zero_grad()


@every_kind
def test_an_observer_sees_every_layer_in_training_and_decoding(kind):
    made, ids = model(kind), torch.randint(4, VOCAB, (3, 5))
    seen = []
    with torch.no_grad(), observe(seen.append):
        made(ids)
        made.step(ids[:, 0], made.start(ids, torch.tensor([5, 2, 3])))
    layers = 2 if kind.startswith("decoder") else 0
    assert [(each.kind, each.layer) for each in seen] == [("decoder", i) for i in range(layers)] * 3


@pytest.mark.parametrize("lengths", [[0, 3], [2, 6]])
@every_kind
def test_a_prompt_that_is_empty_or_longer_than_it_is_wide_is_refused(kind, lengths):
    from regard.errors import ShapeError

    with pytest.raises(ShapeError, match=r"prompt_lengths must be from 1 to S = 5; got \d to \d"):
        model(kind).start(torch.ones(2, 5, dtype=torch.long), torch.tensor(lengths))
