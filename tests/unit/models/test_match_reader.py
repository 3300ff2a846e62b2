"""A text read beside another."""

from math import exp

import pytest
import torch

from regard.attention import observe
from regard.errors import SettingError, ShapeError
from regard.models import MatchReader, MatchReaderConfig, SpanFinder, SpanFinderConfig

from .conftest import train

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


SETTINGS = [
    {},
    {"compares": True},
    {"num_layers": 3},
    {"compares": True, "num_layers": 2, "similarity": "trilinear"},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_padding_of_either_text_changes_nothing(settings):
    reader, ids, other, features = made(**settings)
    whole = read(reader, ids, other, features, (4, N), (2, M))
    alone = read(reader, ids[:1, :4], other[:1, :2], features[:1, :4], (4,), (2,))
    torch.testing.assert_close(whole[:1, :4], alone)
    assert whole.shape == (2, N, reader.output_dim)
    assert whole[0, 4:].eq(0).all()


@pytest.mark.parametrize("compares", [False, True])
def test_another_text_read_once_serves_several_rows(compares):
    reader, ids, other, features = made(compares=compares)
    ids, features = torch.cat([ids, ids.flip(0)]), torch.cat([features, features])
    once = read(reader, ids, other, features, (N,) * 4)
    apart = read(reader, ids, other.repeat_interleave(2, 0), features, (N,) * 4, (M,) * 4)
    torch.testing.assert_close(once, apart)
    with pytest.raises(ShapeError, match="other must have as many rows as ids, or divide them"):
        read(reader, ids[:3], other, features[:3], (N,) * 3)


def inputs_of(reader, *args):
    """What the recurrence over the text reads."""
    seen = {}
    hook = reader.read.register_forward_pre_hook(lambda _, given: seen.update(inputs=given[0]))
    read(reader, *args)
    hook.remove()
    return seen["inputs"]


def softmax_of(scores):
    shares = [exp(score - max(scores)) for score in scores]
    return [share / sum(shares) for share in shares]


@pytest.mark.parametrize(("alignment", "scale"), [("dot", 1.0), ("scaled_dot", 11**-0.5)])
def test_the_alignment_is_drqas(alignment, scale):
    """Σ_j softmax_j(relu(W e_i) · relu(W o_j)) o_j, over the real words alone, in loops."""
    reader, ids, other, features = made(alignment=alignment)
    inputs = inputs_of(reader, ids, other, features, (N, N), (M, 2))
    tokens, theirs = reader.embedding(ids).double(), reader.embedding(other).double()
    torch.testing.assert_close(inputs[..., :11].double(), tokens)
    torch.testing.assert_close(inputs[..., -F:], features)
    align = reader.align.double()
    for row, length in enumerate((M, 2)):
        for i in range(N):
            asked = align(tokens[row, i]).relu()
            keys = [align(theirs[row, j]).relu() for j in range(length)]
            shares = softmax_of([scale * sum((asked * key).tolist()) for key in keys])
            want = sum(share * theirs[row, j] for j, share in enumerate(shares))
            torch.testing.assert_close(
                inputs[row, i, 11:22].double(), want, atol=1e-5, rtol=1e-5, check_dtype=False
            )


def test_layers_read_the_one_before_and_stand_side_by_side():
    """DrQA's three layers, of the text and of the other, whose outputs are joined."""
    reader, ids, other, features = made(num_layers=3)
    states = read(reader, ids, other, features, (N, 4), (M, 2))
    assert reader.output_dim == 3 * 2 * 6
    inputs = inputs_of(reader, ids, other, features, (N, 4), (M, 2))
    want = [reader.read(inputs, torch.tensor([N, 4]))[0]]
    for layer in reader.read_on:
        want.append(layer(want[-1], torch.tensor([N, 4]))[0])
    assert len(want) == 3
    torch.testing.assert_close(states, torch.cat(want, -1))
    theirs = [reader.read_other(reader.embedding(other), torch.tensor([M, 2]))[0]]
    for layer in reader.read_other_on:
        theirs.append(layer(theirs[-1], torch.tensor([M, 2]))[0])
    whole = reader.pool(torch.cat(theirs, -1), torch.tensor([M, 2]))
    torch.testing.assert_close(inputs[:, 0, 22:-F], whole)
    assert reader.pool.pool.queries.shape == (1, 36)


def test_one_layer_has_the_weights_it_always_had():
    names = {name.partition(".")[0] for name in made(compares=True)[0].state_dict()}
    assert names == {"embedding", "align", "read_other", "pool", "read", "compare", "read_again"}


def test_the_similarity_is_bidafs():
    """softmax_j(w · [h_i; q_j; h_i ⊙ q_j]) of both texts' states, whatever w₁ is, in loops."""
    reader, ids, other, features = made(compares=True, similarity="trilinear")
    torch.nn.init.normal_(reader.similarity.of_key)
    torch.nn.init.normal_(reader.similarity.of_product)
    calls, kept = [], {}
    reader.read.register_forward_hook(lambda *hooked: kept.update(states=hooked[2][0]))
    with observe(calls.append):
        read(reader, ids, other, features, (N, N), (M, 2))
    (call,) = [each for each in calls if each.layer == 2]
    looks = call.weights()
    w = [
        torch.randn(12).tolist(),
        reader.similarity.of_key.tolist(),
        reader.similarity.of_product.tolist(),
    ]
    w = [x for part in w for x in part]
    for row, length in enumerate((M, 2)):
        for i in range(N):
            h = kept["states"][row, i].tolist()
            scores = []
            for j in range(length):
                q = call.key[row, j].tolist()
                both = [*h, *q, *(a * b for a, b in zip(h, q, strict=True))]
                scores.append(sum(a * b for a, b in zip(w, both, strict=True)))
            want = torch.tensor([*softmax_of(scores), *[0.0] * (M - length)])
            torch.testing.assert_close(looks[row, i], want, atol=1e-5, rtol=1e-5)


def test_the_similarity_changes_what_is_read_and_is_learned():
    reader, *batch = made(compares=True, similarity="trilinear")
    before = read(reader, *batch)
    before.square().sum().backward()
    assert reader.similarity.of_key.grad.any()
    assert reader.similarity.of_product.grad.any()
    torch.nn.init.normal_(reader.similarity.of_product)
    assert (read(reader, *batch) - before).abs().max() > 1e-4
    with pytest.raises(SettingError, match="similarity must be dot where compares is false; got"):
        MatchReaderConfig(similarity="trilinear")


def test_it_learns_to_find_the_word_after_the_one_asked_for():
    torch.manual_seed(0)
    config = MatchReaderConfig(embed_dim=16, hidden_dim=12, dropout=0.0)
    model = SpanFinder(
        SpanFinderConfig(dropout=0.0), MatchReader(config, vocab_size=V, num_features=1)
    )
    lengths, one = torch.full((32,), N), torch.ones(32, dtype=torch.long)

    def answer():
        ids = torch.stack([torch.randperm(V - 2)[:N] + 2 for _ in range(32)])
        place = torch.randint(0, N - 1, (32,))
        asked = ids.gather(1, place[:, None])
        features = (ids == asked).float()[..., None]
        return *model(ids, lengths, other=asked, other_lengths=one, features=features), place + 1

    def loss_of(_):
        start, end, place = answer()
        return SpanFinder.loss(start, end, place, place) / 32

    train(model, loss_of, lr=0.02)
    start, _, place = answer()
    assert (start.argmax(1) == place).float().mean() > 0.9


def test_sizes_are_checked():
    with pytest.raises(SettingError, match="hidden_dim must be at least 1; got 0"):
        MatchReaderConfig(hidden_dim=0)
