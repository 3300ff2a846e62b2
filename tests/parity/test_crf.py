"""The conditional random field against pytorch-crf."""

import pytest
import torch

from regard.layers.crf import Crf

torchcrf = pytest.importorskip("torchcrf", reason="pytorch-crf is not installed")

pytestmark = pytest.mark.parity


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
