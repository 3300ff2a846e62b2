"""Examples made of summaries say what the summaries say, whatever is cut away."""

import numpy as np
import pytest
import torch

import regard as rg
from regard.errors import DataError
from regard.viewer import Document, GoldLinks, OneAttention, Text, example_of, watched_rows

B, H, N, M, D = 2, 3, 7, 11, 13


def random_summary(height, width, **options):
    """A summary and the weights it is of."""
    query, key = torch.randn(B, H, height, D) * 2, torch.randn(B, H, width, D)
    mask = options.get("mask")
    return rg.summarize(query, key, **options), rg.weights(query, key, mask=mask)


def words(count, mark="w"):
    return [f"{mark}{index}" for index in range(count)]


def close(packed, expected):
    """Whether values are kept to within what the scale promises."""
    relative = packed.step if packed.scale == "log" else 0
    absolute = packed.step if packed.scale == "linear" else 1e-7 * float(expected.max())
    unpacked = packed.values()
    rounding = {"rtol": relative * 1.001 + 1e-5, "atol": absolute * 1.001 + 1e-6}
    return np.allclose(unpacked, expected.numpy(), **rounding)


@pytest.mark.parametrize("row", range(B))
def test_arrays_are_those_of_the_row(row):
    summary, weights = random_summary(N, M, map=4, top=3)
    attention = OneAttention("cross", 1, (0, 2, 5), summary)
    example = example_of([attention], words(M), output=words(N, "o"), row=row)
    stored = example.summaries[0]
    assert (stored.kind, stored.layer, stored.heads) == ("cross", 1, (0, 2, 5))
    entropy = torch.special.entr(weights[row]).sum(-1)
    assert close(stored.entropy.values, entropy)
    assert close(stored.received.values, weights[row].sum(-2))
    assert close(stored.first.values, weights[row][..., 0])
    assert stored.measures["entropy"] == pytest.approx(entropy.mean(-1).tolist(), rel=1e-3)
    assert stored.measures["first"] == pytest.approx(
        weights[row][..., 0].mean(-1).tolist(), rel=2e-3
    )
    assert "distance" not in stored.measures  # two texts have no places in common
    assert stored.bucket == (2, 4)
    pooled = stored.pooled.values()
    assert pooled.shape == (H, 4, 3)
    expected = [weights[row][1, 4:6, first : first + 4].sum().item() for first in (0, 4, 8)]
    assert pooled[1, 2] == pytest.approx(expected, rel=2e-4)
    best = weights[row].topk(3)
    assert stored.top_heads == (0, 2, 5)
    assert stored.top_keys.values().tolist() == best.indices.tolist()
    assert close(stored.top_weights, best.values)
    assert Document.from_json(as_document(example).to_json()).examples[0] == example


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
def test_confidence_is_the_mean_of_each_words_largest_weight_on_another_word(kind):
    height, width = (N, M) if kind == "cross" else (N, N)
    summary, weights = random_summary(height, width, top=width)
    queries = ["<s>", "we", ",", "see", "2", "!", "</s>"]
    source = ["a", "b", "?", *words(M - 4, "k"), "</s>"] if kind == "cross" else queries
    sides = {"cross": (source, queries), "encoder": (queries, None), "decoder": (None, queries)}
    tokens, output = sides[kind]
    attention = OneAttention(kind, 0, (0, 1, 2), summary)
    example = example_of([attention], tokens, output=output, started=False)
    keys = {"cross": [0, 1, *range(3, M - 1)]}.get(kind, [1, 3, 4])
    expected = [
        np.mean(
            [
                max(float(head[row, key]) for key in keys if kind == "cross" or key != row)
                for row in (1, 3, 4)
            ]
        )
        for head in weights[0]
    ]
    assert example.summaries[0].measures["confidence"] == pytest.approx(expected, rel=1e-3)


def test_the_first_token_of_a_text_makes_no_head_confident_and_marks_have_no_confidence():
    summary, weights = random_summary(N, N, top=N)
    attention = OneAttention("encoder", 0, (0, 1, 2), summary)
    measures = example_of([attention], words(N)).summaries[0].measures
    expected = [
        np.mean([head[row][[k for k in range(1, N) if k != row]].max() for row in range(N)])
        for head in weights[0].numpy()
    ]
    assert measures["confidence"] == pytest.approx(expected, rel=1e-3)
    assert "confidence" not in example_of([attention], ["."] * N).summaries[0].measures


def test_the_start_sign_of_a_decoder_is_no_word():
    summary, weights = random_summary(N, N, mask=rg.causal(), top=N)
    attention = OneAttention("decoder", 0, (0, 1, 2), summary)
    example = example_of([attention], None, output=[*words(N - 1), "</s>"], started=True)
    expected = [
        np.mean([max([*head[row][1:row], 0.0]) for row in range(N - 1)])
        for head in weights[0].numpy()
    ]
    assert example.summaries[0].measures["confidence"] == pytest.approx(expected, rel=1e-3)


def about(weights):
    """The sum of weights, as a byte on a log scale keeps it."""
    return pytest.approx(float(weights.sum()), rel=0.04)


def as_document(example):
    return Document(title="", task="", model="", examples=(example,))


@pytest.mark.parametrize("padding", ["left", "right"])
def test_padding_is_cut_away(padding):
    real = 5
    positions = slice(N - real, N) if padding == "left" else slice(0, real)
    is_real = torch.zeros(N, dtype=torch.bool)
    is_real[positions] = True
    mask = rg.dense(is_real[None, :] & is_real[:, None])
    summary, weights = random_summary(N, N, mask=mask, queries=is_real, top=2, map=4)
    example = example_of(
        [OneAttention("encoder", 0, (0, 1, 2), summary)], words(real), padding=padding
    )
    stored, real_weights = example.summaries[0], weights[0][:, positions, positions]
    assert close(stored.received.values, real_weights.sum(-2))
    entropy = torch.special.entr(real_weights).sum(-1)
    assert close(stored.entropy.values, entropy)
    assert stored.measures["entropy"] == pytest.approx(entropy.mean(-1).tolist(), rel=1e-3)
    assert stored.top_keys.values().tolist() == real_weights.topk(2).indices.tolist()
    assert (stored.bucket, stored.start) == ((2, 2), (0, 0))
    assert stored.pooled.values().sum() == pytest.approx(H * real, rel=0.03)


def test_exact_rows_are_stored_of_short_texts_only():
    summary, weights = random_summary(N, N)
    attention = OneAttention("encoder", 3, (0, 1, 2), summary)
    stored = example_of([attention], words(N), rows={("encoder", 3): weights}, row=1).summaries[0]
    assert close(stored.rows, weights[1])
    assert stored.rows.bits == 16
    assert stored.pooled is None
    assert stored.top_heads == ()
    length = 513
    query = torch.randn(1, 1, length, 4)
    long = OneAttention("encoder", 3, (0,), rg.summarize(query, query))
    rows = {("encoder", 3): torch.zeros(1, 1, length, length)}
    assert example_of([long], words(length), rows=rows).summaries[0].rows is None


def test_alignment_error_counts_the_best_keys():
    summary, weights = random_summary(N, M)
    best = weights[0].argmax(-1)  # (H, N)
    links = tuple((int(key), query) for query, key in enumerate(best[1]))
    attention = OneAttention("cross", 0, (0, 1, 2), summary)
    example = example_of([attention], words(M), output=words(N), gold=GoldLinks(sure=links))
    errors = example.summaries[0].measures["alignment_error"]
    right = [sum((int(key), query) in links for query, key in enumerate(head)) for head in best]
    assert errors == pytest.approx([1 - 2 * count / (2 * N) for count in right], abs=1e-3)
    assert errors[1] == 0


def test_maps_of_many_heads_get_coarser_and_keep_their_sums(monkeypatch):
    monkeypatch.setattr("regard.viewer.summaries._CELLS", 70)
    summary, weights = random_summary(N, M)
    attention = OneAttention("cross", 0, (0, 1, 2), summary)
    stored = example_of([attention], words(M), output=words(N)).summaries[0]
    assert stored.bucket == (2, 2)
    assert stored.pooled.values()[2, 3, 5] == about(weights[0, 2, 6:, 10:])


def sharp_heads(top):
    """Heads of which the second is the sharpest and the first the broadest."""
    key = torch.randn(1, 1, N, D)
    sharpness = torch.tensor([0.1, 5.0, 1.0]).reshape(1, H, 1, 1)
    summary = rg.summarize(key * sharpness, key.expand(1, H, N, D), top=top)
    return OneAttention("encoder", 0, (0, 1, 2), summary)


def test_sharpest_heads_have_their_top_keys_stored(monkeypatch):
    monkeypatch.setattr("regard.viewer.summaries._size", lambda part, place, keys: N * keys)
    monkeypatch.setattr("regard.viewer.summaries._ROOM", 2 * N)
    attention = sharp_heads(top=1)
    assert example_of([attention], words(N)).summaries[0].top_heads == (1, 2)
    chosen = example_of([attention], words(N), top_heads=[("encoder", 0, 0)])
    assert chosen.summaries[0].top_heads == (0,)
    every = example_of([attention], words(N), top_heads="all")
    assert every.summaries[0].top_heads == (0, 1, 2)


def test_every_head_has_its_largest_weights_before_any_has_more(monkeypatch):
    monkeypatch.setattr("regard.viewer.summaries._size", lambda part, place, keys: N * keys)
    monkeypatch.setattr("regard.viewer.summaries._ROOM", 6 * N)
    attention = sharp_heads(top=4)
    (stored,) = example_of([attention], words(N)).summaries
    assert (stored.top_heads, stored.top_counts) == ((0, 1, 2), (2, 2, 2))
    monkeypatch.setattr("regard.viewer.summaries._ROOM", 5 * N)
    (stored,) = example_of([attention], words(N)).summaries
    assert (stored.top_heads, stored.top_counts) == ((0, 1, 2), (1, 2, 2))
    keys, weights = stored.top_keys.values(), stored.top_weights.values()
    expected = attention.summary.tensors()["top_keys"][0]
    assert keys[1:].tolist() == expected[1:, :, :2].tolist()
    assert keys[0].tolist() == [[int(best), -1] for best in expected[0, :, 0]]
    assert (weights[0, :, 1] == 0).all()
    assert Document.from_json(as_document(example_of([attention], words(N))).to_json())


def test_many_heads_of_a_long_text_have_links_in_the_bytes_that_two_took():
    length, heads = 4096, 32
    draw = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 1, heads, length, 8, generator=draw)
    attention = OneAttention(
        "decoder", 0, tuple(range(heads)), rg.summarize(query, key, mask=rg.causal())
    )
    (stored,) = example_of([attention], words(length)).summaries
    assert len(stored.top_heads) == heads
    assert sum(map(len, (stored.top_keys.data, stored.top_weights.data))) < 1_000_000
    assert min(stored.top_counts) >= 1


def test_sides_are_those_of_the_kinds():
    square, _ = random_summary(N, N)
    heads = (0, 1, 2)
    alone = example_of([OneAttention("decoder", 0, heads, square)], words(N))
    assert (alone.source, alone.output) == ("", " ".join(words(N)))
    assert not alone.started
    cross, _ = random_summary(N, M)
    both = [OneAttention("decoder", 0, heads, square), OneAttention("cross", 0, heads, cross)]
    pair = example_of(both, words(M), output=Text.of(words(N)), label="mine", score=-0.5)
    assert pair.started
    assert [one.kind for one in pair.summaries] == ["cross", "decoder"]
    assert (pair.label, pair.score) == ("mine", -0.5)
    with pytest.raises(DataError, match="output must be given for cross, decoder attention"):
        example_of(both, words(M))
    with pytest.raises(DataError, match="tokens must be given for encoder attention; got None"):
        example_of([OneAttention("encoder", 0, heads, square)], None)


def test_what_does_not_fit_is_named():
    summary, _ = random_summary(N, N)
    attention = OneAttention("encoder", 0, (0, 1, 2), summary)
    with pytest.raises(DataError, match="tokens must be at most the 7 queries of the encoder"):
        example_of([attention], words(N + 1))
    with pytest.raises(DataError, match="row must be one of 2 rows of the batch; got 2"):
        example_of([attention], words(N), row=2)
    with pytest.raises(DataError, match="heads must name each of 3 heads of the summary; got 1"):
        example_of([OneAttention("encoder", 0, (0,), summary)], words(N))


class Kept:
    def __init__(self, weights, summary):
        self.weights, self.one = weights, OneAttention("encoder", 2, (0, 1, 2), summary)

    def __iter__(self):
        return iter([self.one])

    def rows(self, layer, queries, kind):
        assert (layer, kind) == (2, "encoder")
        return self.weights[..., queries, :]


def test_rows_that_were_watched_are_stored_and_served():
    summary, weights = random_summary(N, N)
    watched = Kept(weights, summary)
    example = example_of(watched, words(5), padding="left", row=1)
    assert close(example.summaries[0].rows, weights[1, :, 2:, 2:])
    answer = watched_rows(watched, example, 1, "left")
    served = answer(0, "encoder", 2, 1, [0, 3])
    assert served == pytest.approx(weights[1, 1, [2, 5], 2:].numpy(), rel=1e-5)
    mean = answer(0, "encoder", "mean", "mean", [4])
    assert mean == pytest.approx(weights[1, :, 6:, 2:].mean(0).numpy(), rel=1e-5)
    assert answer(0, "cross", 2, 1, [0]) is None
    assert watched_rows([watched.one], example) is None
