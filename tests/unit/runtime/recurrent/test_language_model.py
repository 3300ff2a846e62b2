"""A prepared recurrent language model gives what the language model gives."""

from functools import partial

import pytest
import torch

from regard.runtime import PreparedRecurrentLm
from regard.runtime.recurrent import decoder

from .. import conftest
from ..conftest import VOCAB, pairwise, recurrent_language_model

# As exact as is promised.
check_steps = partial(conftest.check_steps, atol=1e-5)
# Hundreds of steps, whose shapes checks would take longer than the steps.
pytestmark = pytest.mark.usefixtures("as_users_have_it")

OPTIONS = {
    "cell": ["rnn", "gru", "lstm"],
    "num_layers": [1, 2, 3],
    "tie_embeddings": [True, False],
    "output_bias": [True, False],
    "embed_dim": [12, 17],  # as wide as the state, or not
}


def check(model, prompt_lengths, count):
    made, rows = PreparedRecurrentLm(model), len(prompt_lengths)
    prompt = torch.randint(4, VOCAB, (rows, max(prompt_lengths)))
    given = prompt, torch.tensor(prompt_lengths)
    with torch.no_grad():
        check_steps(model, made, model.start(*given), made.start(*given), rows=rows, count=count)


@pytest.mark.parametrize("options", pairwise(OPTIONS), ids=lambda each: each["cell"])
def test_steps_are_the_models(options, monkeypatch):
    model = recurrent_language_model(**options)
    check(model, [6, 2, 4, 1], 7)
    check(model, [0, 0, 0], 5)
    monkeypatch.setattr(decoder, "MOST_BYTES", 0)  # the output beside the loop
    check(model, [3, 1], 4)


def test_an_elman_network_may_have_relus():
    check(recurrent_language_model(cell="rnn", activation="relu"), [3, 1], 5)
