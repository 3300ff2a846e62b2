"""The conditional random field against pytorch-crf."""

import time

import pytest
import torch

from regard.layers import Crf
from regard.models import RecurrentReader, RecurrentReaderConfig, Tagger, TaggerConfig

torchcrf = pytest.importorskip("torchcrf", reason="pytorch-crf is not installed")

pytestmark = [pytest.mark.parity, pytest.mark.slow]


def test_probabilities_and_paths_are_those_of_pytorch_crf():
    B, N, K = 7, 31, 17
    ours, theirs = Crf(K), torchcrf.CRF(K, batch_first=True)
    ours.follow.data = theirs.transitions.data.normal_()
    ours.begin.data = theirs.start_transitions.data.normal_()
    ours.end.data = theirs.end_transitions.data.normal_()
    scores, tags = 3 * torch.randn(B, N, K), torch.randint(K, (B, N))
    lengths = torch.tensor([31, 1, 2, 30, 17, 9, 31])
    mask = torch.arange(N) < lengths[:, None]
    want = theirs(scores, tags, mask=mask, reduction="none")
    torch.testing.assert_close(ours.log_prob(scores, tags, lengths), want, rtol=1e-5, atol=1e-3)
    paths = theirs.decode(scores, mask=mask)
    found = ours.best(scores, lengths)
    assert [row[:n].tolist() for row, n in zip(found, lengths.tolist(), strict=True)] == paths


def test_a_step_with_it_costs_at_most_half_as_much_again_as_without():
    """At the sizes of Chinese names in sentences: 7 tags, 64 characters, 32 sentences."""
    B, N, K = 32, 64, 7
    ids, tags = torch.randint(1, 4000, (B, N)), torch.randint(K, (B, N))
    lengths = torch.randint(20, N + 1, (B,))
    config = RecurrentReaderConfig(embed_dim=100, hidden_dim=128)
    models = {}
    for crf in (False, True):
        reader = RecurrentReader(config, vocab_size=4000)
        models[crf] = Tagger(TaggerConfig(crf=crf), reader, num_tags=K)
    seconds = {False: [], True: []}
    for _ in range(10):
        for crf, model in models.items():
            began = time.process_time()
            model.loss(model(ids, lengths), tags, lengths).backward()
            seconds[crf].append(time.process_time() - began)
    assert min(seconds[True]) < 1.5 * min(seconds[False])
