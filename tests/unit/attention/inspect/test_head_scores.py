"""Roles of heads, against sums over the whole matrix, and of heads made up to do one thing."""

import pytest
import torch
from torch.testing import assert_close

import regard as rg
from regard.errors import ShapeError

H, N, M, D = 3, 13, 7, 5
TOKENS = [3, 5, 7, 3, 5, 5, 7, 2, 3, 5, 7, 11, 2]
TREE = [2, 0, 2, 2, 4, 5, 5, 2, 8, 8, 8, 8, 2]
LINKS = [(0, 3), (0, 4), (5, 1), (12, 0)]


def targets(tokens):
    n = len(tokens)
    ids = torch.tensor(tokens)
    before = torch.ones(n, n).tril(-1).bool()
    same = (ids[:, None] == ids) & before
    tree, links = torch.zeros(2, n, n, dtype=torch.bool)
    for index, head in enumerate(TREE):
        if head:
            tree[index, head - 1] = True
    for query, key in LINKS:
        links[query, key] = True
    return {
        "previous": torch.eye(n).bool().roll(-1, 1) & before,
        "same": torch.eye(n).bool(),
        "next": torch.eye(n).bool().roll(1, 1) & ~before,
        "duplicate": same,
        "induction": same.roll(1, 1),
        "tree": tree,
        "links": links,
    }


def mean_of(weights, mask, counted):
    there = mask.any(-1) & counted
    return (weights * mask).sum(-1)[..., there].sum(-1) / there.sum()


OPTIONS = {
    "plain": {},
    "causal": {"mask": rg.causal()},
    "window": {"mask": rg.causal() & rg.window(before=4)},
    "bias": {"mask": rg.causal(), "bias": torch.randn(H, N, N)},
    "rule": {"mask": rg.where(lambda b, h, q, k: (q + k) % 3 > 0)},
    "sparse": {"weighting": rg.Sparsemax()},
    "gaussian": {"score": rg.Gaussian(1.5)},
    "sink": {"weighting": rg.Softmax(torch.tensor([0.5, 1.0, -1.0])), "mask": rg.causal()},
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("groups", [H, 1])
def test_scores_are_sums_over_the_matrix(name, groups):
    options = OPTIONS[name]
    query, key = torch.randn(1, H, N, D), torch.randn(1, groups, N, D)
    scores = rg.head_scores(query, key, TOKENS, tree=TREE, links=LINKS, **options)
    weights = rg.weights(query, key, **options)[0]
    mask = options.get("mask")
    even = rg.weights(query[:, :1] * 0, key[:, :1] * 0, **({} if mask is None else {"mask": mask}))
    for kind, target in targets(TOKENS).items():
        counted = torch.ones(N, dtype=torch.bool)
        assert_close(scores.weight[kind], mean_of(weights, target, counted), msg=kind)
        assert scores.even[kind] == pytest.approx(float(mean_of(even[0, 0], target, counted)))
        assert scores.queries[kind] == int(target.any(-1).sum())
    assert_close(scores.weight["first"], weights[..., 0].mean(-1))
    assert scores.even["first"] == pytest.approx(float(even[0, 0, :, 0].mean()))


def test_a_made_up_induction_head_is_one():
    tokens = torch.randperm(16).tolist() * 2
    vectors = torch.eye(16)[tokens]
    before = vectors.roll(1, 0)
    before[0] = 0  # what stands before each token: what an earlier head would have written there
    query, key = 40 * torch.stack([vectors, before]), torch.stack([before, vectors])
    scores = rg.head_scores(query[None], key[None], tokens, mask=rg.causal())
    assert scores.weight["induction"][0] > 0.99
    assert scores.weight["induction"][1] < 0.05
    assert scores.even["induction"] < 0.06
    assert scores.queries["induction"] == 16
    assert "induction" in str(scores)
    again = rg.head_scores(query[None], key[None], torch.tensor([tokens]), mask=rg.causal())
    assert again.queries == scores.queries


def test_another_text_has_a_diagonal_and_punctuation_is_found():
    query, key = torch.randn(1, H, N, D), torch.randn(1, H, M, D)
    words = ["▁Ja", ",", "▁gut", "##?!", "Ġ.", "▁x.", "</s>"]
    scores = rg.head_scores(query, key, words, links=[(0, 1)])
    weights = rg.weights(query, key)[0]
    assert list(scores.weight) == ["diagonal", "links", "first", "punctuation"]
    assert_close(scores.weight["punctuation"], weights[..., [1, 3, 4]].sum(-1).mean(-1))
    assert scores.even["punctuation"] == pytest.approx(3 / 7)
    keys_on_diagonal = [round(n * (M - 1) / (N - 1)) for n in range(N)]
    assert_close(scores.weight["diagonal"], weights[:, range(N), keys_on_diagonal].mean(-1))


def test_a_watched_model_gives_them_by_layer():
    layer = torch.nn.TransformerEncoderLayer(12, 3, 7, batch_first=True)
    model = rg.use(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)).eval()
    states = torch.randn(1, N, 12)
    with torch.no_grad(), rg.watch(model, keep=True) as watched:
        model(states)
    with torch.no_grad(), rg.watch(model, heads=[2], keep=True) as one_head:
        model(states)
    rows = watched.rows(1, range(N))[0]
    scores = watched.head_scores(1, TOKENS)
    assert_close(scores.weight["previous"], rows.diagonal(-1, 1, 2).mean(-1))
    assert_close(one_head.head_scores(1, TOKENS).weight["same"], scores.weight["same"][2:])


def test_what_does_not_fit_is_an_error():
    query = torch.randn(1, H, N, D)
    for message, options in {
        "tokens must be one for each of 13 keys; got 2": {"tokens": [1, 2]},
        "tree must be 13 numbers from 0 to 13": {"tree": [1]},
        r"links must be pairs \(query, key\) below": {"links": [(0, 13)]},
    }.items():
        with pytest.raises(ShapeError, match=message):
            rg.head_scores(query, query, **{"tokens": TOKENS, **options})
    with pytest.raises(ShapeError, match="query must be of one text; got 2"):
        rg.head_scores(query.expand(2, -1, -1, -1), query, TOKENS)


@pytest.mark.parametrize("name", ["causal", "rule"])
def test_a_text_without_punctuation_gives_it_nothing(name):
    query, key = torch.randn(1, H, N, D), torch.randn(1, H, N, D)
    scores = rg.head_scores(query, key, ["a"] * N, **OPTIONS[name])
    assert scores.weight["punctuation"].tolist() == [0.0] * H
    assert scores.even["punctuation"] == 0.0
