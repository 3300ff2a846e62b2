"""Small models with random weights, and their steps against those of what is made of them."""

import copy

import pytest
import torch

from regard.models import (
    Decoder,
    DecoderConfig,
    RecurrentLm,
    RecurrentLmConfig,
    RnnSeq2Seq,
    RnnSeq2SeqConfig,
    Transformer,
    TransformerConfig,
)

VOCAB = 37  # one group of 32 and a part of another


def translator(**options):
    """In evaluation mode; norms and biases are no longer those of a new model."""
    sizes = {"model_dim": 24, "num_heads": 4, "ffn_dim": 29}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 2}
    config = TransformerConfig(**{**sizes, **layers, "max_length": 200, **options})
    return shaken(Transformer(config, source_vocab=VOCAB, target_vocab=VOCAB, shared_vocab=True))


def language_model(**options):
    sizes = {"model_dim": 24, "num_heads": 4, "num_layers": 2, "ffn_dim": 29, "max_length": 200}
    return shaken(Decoder(DecoderConfig(**{**sizes, **options}), vocab_size=VOCAB))


def recurrent_translator(**options):
    sizes = {"embed_dim": 12, "hidden_dim": 17, "attention_dim": 13, "max_length": 20}
    config = RnnSeq2SeqConfig(**{**sizes, **options})
    return shaken(RnnSeq2Seq(config, source_vocab=VOCAB, target_vocab=VOCAB, shared_vocab=True))


def recurrent_language_model(**options):
    config = RecurrentLmConfig(**{"embed_dim": 12, "hidden_dim": 17, **options})
    return shaken(RecurrentLm(config, vocab_size=VOCAB))


@pytest.fixture
def threads():
    """Whoever changes their number leaves it as it was."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def shaken(model):
    """The model with every weight a little elsewhere."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def check_best(log_probs, values, tokens, hidden, *, atol=3e-5):
    """Whether these are likeliest tokens of log-probabilities, up to their rounding."""
    for row in tokens.tolist():
        assert len(set(row)) == len(row)
        assert not set(row) & set(hidden)
    allowed = log_probs.clone()
    allowed[:, hidden] = -torch.inf
    torch.testing.assert_close(values, allowed.topk(values.shape[1]).values, atol=atol, rtol=0)
    torch.testing.assert_close(values, allowed.gather(1, tokens), atol=atol, rtol=0)


def rounded_copies(model, count=4):
    """The model in float64, and copies whose weights are off by up to a rounding to float32."""
    exact, copies = copy.deepcopy(model).double(), []
    for _ in range(count):
        copies.append(copy.deepcopy(exact))
        for weight in copies[-1].parameters():
            weight.data *= 1 + 2**-24 * (2 * torch.rand_like(weight) - 1)
    return [exact, *copies]


@torch.no_grad()
def check_steps(plain, runtime, inputs, *, count, hidden=(0, 1), atol=3e-5, copies=()):
    """Drive a model and what is made of it side by side, with rows doubled, dropped and reordered.

    Both ways of a step, all log-probabilities and the best, go from states of their own. Where the
    model itself is unsteady, which its ``rounded_copies`` tell, up to eight times what one rounding
    of its weights does is close enough.
    """
    rows, state, runtime_state = len(inputs[1]), plain.start(*inputs), runtime.start(*inputs)
    best_state, token = runtime_state, torch.full((rows,), 2)
    states = [model.start(*inputs) for model in copies]
    for _ in range(count):
        expected, state = plain.step(token, state)
        steps = [model.step(token, each) for model, each in zip(copies, states, strict=True)]
        states = [after for _, after in steps]
        for outputs, _ in steps[1:]:
            atol = max(atol, 8 * float((outputs - steps[0][0]).abs().max()))
        outputs, runtime_state = runtime.step(token, runtime_state)
        torch.testing.assert_close(outputs, expected, atol=atol, rtol=0)
        values, tokens, best_state = runtime.steps.best(token, best_state, 3, list(hidden))
        check_best(expected, values, tokens, list(hidden), atol=atol)
        rows_left = torch.randint(0, rows, (int(torch.randint(2, 9, ())),))
        token = tokens[rows_left, torch.randint(0, 3, (len(rows_left),))]
        state, runtime_state, best_state = (
            each.select(rows_left) for each in (state, runtime_state, best_state)
        )
        states = [each.select(rows_left) for each in states]
        rows = len(rows_left)


def prompts(lengths):
    return torch.randint(4, VOCAB, (len(lengths), max(lengths))), torch.tensor(lengths)
