"""A text read beside another."""

import pytest
import torch

from regard.errors import SettingError, ShapeError
from regard.models import MatchReader, MatchReaderConfig, SpanFinder, SpanFinderConfig

N, M, F, V = 7, 5, 3, 17


def made(**settings):
    torch.manual_seed(0)
    config = MatchReaderConfig(embed_dim=11, hidden_dim=6, dropout=0.0, **settings)
    reader = MatchReader(config, vocab_size=V, num_features=F).eval()
    ids, other = torch.randint(2, V, (2, N)), torch.randint(2, V, (2, M))
    return reader, ids, other, torch.rand(2, N, F)


def read(reader, ids, other, features, lengths=(N, N), other_lengths=(M, M)):
    return reader(
        ids,
        torch.tensor(lengths[: len(ids)]),
        other=other,
        other_lengths=torch.tensor(other_lengths[: len(other)]),
        features=features,
    )


@pytest.mark.parametrize("compares", [False, True])
def test_padding_of_either_text_changes_nothing(compares):
    reader, ids, other, features = made(compares=compares)
    whole = read(reader, ids, other, features, (4, N), (2, M))
    alone = read(reader, ids[:1, :4], other[:1, :2], features[:1, :4], (4,), (2,))
    torch.testing.assert_close(whole[:1, :4], alone)
    assert whole[0, 4:].eq(0).all()


@pytest.mark.parametrize("compares", [False, True])
def test_the_other_text_and_the_features_change_what_is_read(compares):
    reader, ids, other, features = made(compares=compares)
    before = read(reader, ids, other, features)
    assert not torch.allclose(before, read(reader, ids, other.flip(1) + 1 - 1, features))
    assert not torch.allclose(before, read(reader, ids, other, features.flip(2)))


@pytest.mark.parametrize("compares", [False, True])
def test_another_text_read_once_serves_several_rows(compares):
    reader, ids, other, features = made(compares=compares)
    ids, features = torch.cat([ids, ids.flip(0)]), torch.cat([features, features])
    once = read(reader, ids, other, features, (N,) * 4)
    apart = read(reader, ids, other.repeat_interleave(2, 0), features, (N,) * 4, (M,) * 4)
    torch.testing.assert_close(once, apart)
    with pytest.raises(ShapeError, match="other must have as many rows as ids, or divide them"):
        read(reader, ids[:3], other, features[:3], (N,) * 3)


def test_the_alignment_is_drqas():
    reader, ids, other, features = made()
    seen = {}
    hook = reader.read.register_forward_pre_hook(lambda _, args: seen.update(inputs=args[0]))
    read(reader, ids, other, features, (N, N), (M, 2))
    hook.remove()
    tokens, theirs = reader.embedding(ids), reader.embedding(other)
    query, key = reader.align(tokens).relu(), reader.align(theirs).relu()
    scores = query @ key.mT / 11**0.5
    scores[1, :, 2:] = -torch.inf
    aligned = scores.softmax(-1) @ theirs
    torch.testing.assert_close(seen["inputs"][..., :11], tokens)
    torch.testing.assert_close(seen["inputs"][..., 11:22], aligned)
    torch.testing.assert_close(seen["inputs"][..., -F:], features)


def test_it_learns_to_find_the_word_after_the_one_asked_for():
    torch.manual_seed(0)
    config = MatchReaderConfig(embed_dim=16, hidden_dim=12, dropout=0.0)
    model = SpanFinder(
        SpanFinderConfig(dropout=0.0), MatchReader(config, vocab_size=V, num_features=1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    lengths, one = torch.full((32,), N), torch.ones(32, dtype=torch.long)
    for _ in range(80):
        ids = torch.stack([torch.randperm(V - 2)[:N] + 2 for _ in range(32)])
        place = torch.randint(0, N - 1, (32,))
        asked = ids.gather(1, place[:, None])
        features = (ids == asked).float()[..., None]
        start, end = model(ids, lengths, other=asked, other_lengths=one, features=features)
        loss = SpanFinder.loss(start, end, place + 1, place + 1) / 32
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (start.argmax(1) == place + 1).float().mean() > 0.9


def test_sizes_are_checked():
    with pytest.raises(SettingError, match="hidden_dim must be at least 1; got 0"):
        MatchReaderConfig(hidden_dim=0)
