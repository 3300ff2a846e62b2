"""A conditional random field against the enumeration of every tag sequence."""

from itertools import pairwise, product

import pytest
import torch

from regard.errors import SettingError, ShapeError
from regard.layers.crf import Crf

B, N, K = 3, 5, 4
LENGTHS = [5, 1, 3]


@pytest.fixture
def crf():
    module = Crf(K).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


@pytest.fixture
def scores():
    return torch.randn(B, N, K, dtype=torch.float64)


def worth(crf, scores, tags):
    total = crf.begin[tags[0]] + crf.end[tags[-1]]
    total = total + sum(row[tag] for row, tag in zip(scores, tags, strict=True))
    return total + sum(crf.follow[a, b] for a, b in pairwise(tags))


def padded(tags):
    return torch.tensor([[*each, *([K - 1] * (N - len(each)))] for each in tags])


def test_probabilities_are_those_of_enumeration_and_sum_to_one(crf, scores):
    lengths = torch.tensor(LENGTHS)
    for row, length in enumerate(LENGTHS):
        paths = list(product(range(K), repeat=length))
        path_scores = torch.stack([worth(crf, scores[row, :length], path) for path in paths])
        inputs = (
            scores[row].expand(len(paths), N, K),
            padded(paths),
            torch.tensor([length] * len(paths)),
        )
        log_probs = crf.log_prob(*inputs)
        torch.testing.assert_close(log_probs, path_scores.log_softmax(0))
        torch.testing.assert_close(log_probs.exp().sum(), torch.tensor(1.0, dtype=torch.float64))
        best = crf.best(scores, lengths)[row, :length].tolist()
        assert tuple(best) == paths[int(path_scores.argmax())]


def test_padding_is_never_looked_at(crf, scores):
    lengths, tags = torch.tensor(LENGTHS), torch.randint(K, (B, N))
    want, path = crf.log_prob(scores, tags, lengths), crf.best(scores, lengths)
    longer = torch.cat([scores, torch.full((B, 2, K), 1e3, dtype=torch.float64)], 1)
    longer[1, 1:] = 1e6
    more = torch.cat([tags, torch.full((B, 2), K - 1)], 1)
    more[1, 1:] = 2
    torch.testing.assert_close(crf.log_prob(longer, more, lengths), want)
    for padding in (-100, K, 1000):
        tags[1, 1:] = tags[2, 3:] = padding
        assert crf.log_prob(scores, tags, lengths).equal(want)
    assert crf.best(longer, lengths)[:, :N].equal(path)
    assert crf.best(longer, lengths)[1, 1:].eq(0).all()
    longer.requires_grad_()
    crf.log_prob(longer, more, lengths).sum().backward()
    assert longer.grad[1, 1:].eq(0).all()
    assert longer.grad[0, :N].ne(0).all()


def test_tags_that_may_not_follow_never_do():
    # O, B, I: an I follows a B or an I, and never comes first.
    allowed = torch.tensor([[1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 1, 0]]).bool()
    crf = Crf(3, allowed=allowed)
    scores = torch.tensor([[[0.0, 0, 9], [0, 0, 9], [9, 0, 0], [0, 0, 9]]])
    path = crf.best(scores, torch.tensor([4]))[0].tolist()
    assert path == [1, 2, 0, 1] or path == [1, 2, 0, 0]
    broken = crf.log_prob(scores, torch.tensor([[2, 2, 0, 2]]), torch.tensor([4]))
    assert broken.isfinite().all()
    assert broken.exp().eq(0).all()
    assert not [name for name in crf.state_dict() if "penalties" in name]


def test_half_precision_scores_are_summed_in_full(crf):
    crf = crf.float()
    scores, tags = torch.randn(B, N, K), torch.randint(K, (B, N))
    lengths = torch.tensor(LENGTHS)
    log_probs = crf.log_prob(scores.bfloat16(), tags, lengths)
    torch.testing.assert_close(log_probs, crf.log_prob(scores.bfloat16().float(), tags, lengths))


ALLOWED, TAGS = torch.ones(K + 1, K, dtype=torch.bool), torch.zeros(B, N, dtype=torch.long)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda crf, _: Crf(K, allowed=ALLOWED[1:]), r"boolean of shape \(K \+ 1, K\) = \(5, 4\)"),
        (lambda crf, _: Crf(K, allowed=ALLOWED.float()), r"allowed .* got float32 \(5, 4\)"),
        (lambda crf, s: crf.best(s, [0, 1, 3]), "lengths must be from 1 to N = 5; got 0 to 3"),
        (lambda crf, s: crf.best(s, LENGTHS[:2]), r"lengths .* \(B,\) = \(3,\); got int64 \(2,\)"),
        (lambda crf, s: crf.best(s, [1.0, 1, 1]), "lengths must be integers"),
        (lambda crf, s: crf.best(s[..., :3], LENGTHS), r"num_tags = 4; got float64 \(3, 5, 3\)"),
        (lambda crf, s: crf.best(s[0], LENGTHS), r"scores .* got float64 \(5, 4\)"),
        (lambda crf, s: crf.best(s[:, :0], LENGTHS), "N at least 1"),
        (lambda crf, s: crf.best(s.long(), LENGTHS), "scores must be floats"),
        (
            lambda crf, s: crf.log_prob(s, TAGS[:, 1:], LENGTHS),
            r"tags .* \(3, 5\); got int64 \(3, 4",
        ),
        (lambda crf, s: crf.log_prob(s, TAGS.bool(), LENGTHS), "tags must be integers"),
        (lambda crf, s: crf.log_prob(s, TAGS + K, LENGTHS), "tags must be from 0 to K − 1 = 3"),
        (lambda crf, s: crf.log_prob(s, TAGS - 100, LENGTHS), "within each length; got -100 to 0"),
        (lambda crf, s: crf.log_prob(s, TAGS, [6, 1, 1]), "lengths must be from 1 to N = 5"),
    ],
)
def test_what_is_wrong_is_named(unchecked_shapes, crf, scores, call, message, monkeypatch):
    # Lengths are lists above, to be short.
    for name in ("best", "log_prob"):
        plain = getattr(crf, name)
        monkeypatch.setattr(crf, name, lambda *a, plain=plain: plain(*a[:-1], torch.tensor(a[-1])))
    with pytest.raises(ShapeError, match=message):
        call(crf, scores)


def test_there_is_a_tag():
    with pytest.raises(SettingError, match="num_tags must be at least 1; got 0"):
        Crf(0)
