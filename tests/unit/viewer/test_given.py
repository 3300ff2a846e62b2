"""Weights of any origin are shown as they are."""

import numpy as np
import pytest
import torch

import regard as rg
from regard.errors import DataError, SettingError, ShapeError
from regard.viewer.summaries import LONGEST_WITH_ROWS

L, H, N, M = 2, 3, 5, 7


def example(*arrays, **options):
    return rg.show(*arrays, **options).document.examples[0]


def random_map(*shape):
    return torch.rand(shape).softmax(-1)


def test_names_of_queries_and_keys_make_two_texts():
    weights = random_map(3, 3)
    shown_example = example(weights, keys=["I", "love", "you"], queries=["je", "t'", "aime"])
    assert [token.text for token in shown_example.source_tokens] == ["I", "love", "you"]
    assert [token.text for token in shown_example.output_tokens] == ["je", "t'", "aime"]
    assert shown_example.summaries[0].kind == "cross"
    assert shown_example.summaries[0].rows.values()[0] == pytest.approx(weights.numpy(), rel=1e-3)
    by_position = example(weights, ["I", "love", "you"], output=["je", "t'", "aime"])
    assert by_position == shown_example


def test_weights_have_queries_and_keys_and_what_a_model_read_is_texts():
    named = example(random_map(H, N, N), names=["near", "far", "all"])
    assert (named.sides, named.head_names) == ("queries and keys", ("near", "far", "all"))
    layer = rg.use(torch.nn.TransformerEncoderLayer(8, 2, batch_first=True)).eval()
    with rg.watch(layer, keep=True) as watched:
        layer(torch.zeros(1, 3, 8))
    assert example(watched, ["a", "b", "c"]).sides == "texts"
    with pytest.raises(SettingError, match="names must be None for a document; got some"):
        rg.show(rg.show(random_map(N, M)).document, names=["a"])


@pytest.mark.parametrize("shape", [(N, M), (H, N, M), (L, H, N, M)])
def test_heads_and_layers_are_inferred_from_the_axes(shape):
    weights = random_map(*shape)
    shown_example = example(weights)
    layers = weights.reshape(-1, shape[-3] if len(shape) > 2 else 1, N, M)
    assert [layer.layer for layer in shown_example.summaries] == list(range(len(layers)))
    for layer, expected in zip(shown_example.summaries, layers, strict=True):
        assert layer.kind == "cross"
        assert layer.heads == tuple(range(len(expected)))
        assert layer.rows.values() == pytest.approx(expected.numpy(), rel=1e-3)
        entropy = torch.special.entr(expected).sum(-1).mean(-1)
        assert layer.measures["entropy"] == pytest.approx(entropy.tolist(), rel=1e-3)


@pytest.mark.parametrize(
    "weights", [[[0.25, 0.75], [1, 0]], np.float32([[0.25, 0.75], [1, 0]]),
              torch.tensor([[0.25, 0.75], [1, 0]], dtype=torch.bfloat16),
              [torch.tensor([[0.25, 0.75], [1, 0]])]]
)  # fmt: skip
def test_lists_arrays_and_tensors_of_any_dtype_are_weights(weights):
    assert example(weights).summaries[0].rows.values()[0] == pytest.approx(
        np.array([[0.25, 0.75], [1, 0]]), rel=1e-3
    )


def test_long_weights_are_pooled_and_answered_by_this_process():
    size = LONGEST_WITH_ROWS + 3
    weights = random_map(H, size, size)
    weights_page = rg.show(weights)
    (layer,) = weights_page.document.examples[0].summaries
    assert layer.rows is None
    assert layer.bucket == (16, 16)
    expected = float(weights[1, 32:48, 16:32].sum())
    assert layer.pooled.values()[1, 2, 1] == pytest.approx(expected, rel=0.03)
    assert layer.received.values.values() == pytest.approx(weights.sum(-2).numpy(), rel=0.03)
    head = layer.top_heads[0]
    assert layer.top_keys.values()[0, :, 0].tolist() == weights[head].argmax(-1).tolist()
    assert 'data-rows="http://127.0.0.1' in weights_page._repr_html_().replace("&quot;", '"')
    weights_page.close()


@pytest.mark.parametrize(
    ("weights", "options", "error", "message"),
    [
        (torch.rand(3), {}, ShapeError, r"weights must be \(N, M\), .*; got shape \(3,\)"),
        (torch.rand(0, 3), {}, ShapeError, r"got shape \(0, 3\)"),
        ([[1.0], [0.5, 0.5]], {}, ShapeError, "weights must have rows of one length; got several"),
        (-torch.eye(2), {}, DataError, r"at least 0; got -1. Of scores, show the softmax"),
        (torch.tensor([[torch.nan]]), {}, DataError, "weights must be finite .*; got nan"),
        (torch.eye(2), {"keys": ["a"]}, DataError, "keys must name each of 2; got 1"),
        (torch.eye(2), {"queries": list("abc")}, DataError, "queries must name each of 2; got 3"),
        (torch.eye(1), {"keys": ["a"], "tokens": ["a"]}, SettingError, "keys must be None where"),
        (
            random_map(H, N, M),
            {"names": ["a", "b"]},
            DataError,
            "head_names must name each of 3 heads",
        ),
        (torch.eye(1), {"queries": ["a"], "output": ["a"]}, SettingError, "queries must be None"),
    ],
)
def test_what_are_no_weights_is_named(weights, options, error, message):
    with pytest.raises(error, match=message):
        rg.show(weights, **options)
