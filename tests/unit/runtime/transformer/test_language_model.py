"""A prepared language model gives what the language model gives."""

import pytest
import torch

from regard.errors import ShapeError
from regard.layers import RotaryPositions
from regard.runtime import PreparedDecoder

from ..conftest import VOCAB, check_steps, language_model, pairwise

# Hundreds of steps, whose shapes checks would take longer than the steps.
pytestmark = pytest.mark.usefixtures("as_users_have_it")

OPTIONS = {
    "norm": ["pre", "post"],
    "norm_kind": ["layer", "rms"],
    "activation": ["relu", "gelu", "gelu_tanh", "swiglu"],
    "num_key_heads": [None, 1, 2],
    "positions": ["sinusoidal", "learned", "alibi", "rotary"],
    "window": [None, 3],
    "tie_embeddings": [True, False],
    "norm_eps": [1e-5, 0.03],
}


def check(model, prompt_lengths, count):
    made, rows = PreparedDecoder(model), len(prompt_lengths)
    prompt = torch.randint(4, VOCAB, (rows, max(prompt_lengths)))
    given = prompt, torch.tensor(prompt_lengths)
    with torch.no_grad():
        check_steps(model, made, model.start(*given), made.start(*given), rows=rows, count=count)


@pytest.mark.parametrize("options", pairwise(OPTIONS), ids=lambda each: str(each["activation"]))
def test_steps_are_the_models(options):
    model = language_model(**options)
    check(model, [6, 2, 4, 1], 7)
    check(model, [0, 0, 0], 5)


@pytest.mark.parametrize(
    ("positions", "prompt_lengths"),
    [
        ("learned", [1, 1]),
        ("sinusoidal", [3, 3, 3]),
        ("alibi", [31, 30]),
        ("rotary", [32, 1]),
        ("learned", [33, 33]),
        ("sinusoidal", [34, 2, 9]),
        ("alibi", [64, 64]),
        ("rotary", [65, 7]),
        ("learned", [140, 3]),
    ],
    ids=str,
)
def test_prompts_of_any_length_are_gone_on_from(positions, prompt_lengths):
    check(language_model(positions=positions, num_layers=1), prompt_lengths, 5)


@pytest.mark.parametrize("options", [{"window": 5}, {"positions": "alibi"}], ids=str)
def test_stores_grow_with_answers(options):
    check(language_model(num_layers=1, **options), [9, 4, 1], 60)


def test_a_short_prompt_has_learned_positions_after_its_longer_neighbours_have_none():
    model = language_model(positions="learned", max_length=9)
    made = PreparedDecoder(model)
    given = torch.randint(4, VOCAB, (3, 8)), torch.tensor([8, 2, 3])
    rows = torch.tensor([2, 1])
    with torch.no_grad():
        state, ready = model.start(*given).select(rows), made.start(*given).select(rows)
        for token in torch.randint(4, VOCAB, (7, 2)):
            expected, state = model.step(token, state)
            found, ready = made.step(token, ready)
            torch.testing.assert_close(found, expected, atol=3e-5, rtol=0)
        with pytest.raises(ShapeError, match="at most max_length=9; got 10"):
            made.step(token, ready)


def test_a_first_token_counts_only_without_a_prompt():
    made = PreparedDecoder(language_model())
    start = made.start(torch.randint(4, VOCAB, (2, 3)), torch.tensor([3, 2]))
    one, other = (made.step(torch.full((2,), token), start)[0] for token in (5, 6))
    torch.testing.assert_close(one, other, atol=0, rtol=0)
    start = made.start(torch.zeros(2, 0, dtype=torch.long), torch.zeros(2, dtype=torch.long))
    one, other = (made.step(torch.full((2,), token), start)[0] for token in (5, 6))
    assert (one - other).abs().max() > 0.01


@pytest.mark.parametrize("pairs", ["interleaved", "halves"])
@pytest.mark.parametrize("num_heads", [2, 6, 12])
def test_pairs_are_turned_as_their_kind_lies(pairs, num_heads):
    model = language_model(positions="rotary", num_heads=num_heads, activation="swiglu")
    for layer in model.layers:
        layer.attend.rotary = RotaryPositions(24 // num_heads, pairs=pairs, base=50.0, max_length=9)
    check(model, [6, 2, 4], 9)
