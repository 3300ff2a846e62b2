"""``attend`` written out in a program: the same numbers as the engine's, for all sizes."""

import pytest
import torch
from tests.cases import slow_but
from tests.unit.attention.graph.test_export import H, Layer, inputs
from torch.export import Dim

import regard as rg
from regard.attention.graph.formula import written_out
from regard.errors import SettingError

pytestmark = pytest.mark.usefixtures("as_users_have_it")

CASES = {
    "plain": (H, lambda w, n: {}),
    "groups": (2, lambda w, n: {"mask": rg.causal()}),
    "lengths": (H, lambda w, n: {"mask": rg.lengths(n)}),
    "not those": (H, lambda w, n: {"mask": ~rg.lengths(n) & ~rg.window(2, 1)}),
    "either": (H, lambda w, n: {"mask": rg.lengths(n) | rg.causal(first=0)}),
    "softcap": (H, lambda w, n: {"score": rg.ScaledDot(softcap=2.0), "mask": rg.lengths(n)}),
    "additive": (3, lambda w, n: {"score": rg.Additive(w[0]), "mask": rg.lengths(n)}),
    "cosine": (H, lambda w, n: {"score": rg.Cosine(0.5)}),
    "laplace": (H, lambda w, n: {"score": rg.Laplace(1.5)}),
    "alibi": (3, lambda w, n: {"bias": rg.alibi(), "mask": rg.causal()}),
    "shaw": (H, lambda w, n: {"bias": rg.shaw(w, w), "mask": rg.lengths(n)}),
    "relative": (H, lambda w, n: {"bias": rg.relative(w[:4, :1], max_distance=3)}),
    "given bias": (H, lambda w, n: {"bias": w[:1, :1] * n[:, None, None, None]}),
}


@pytest.mark.parametrize("case", slow_but(["plain", "groups", "additive", "shaw"], CASES))
def test_one_program_serves_all_sizes_without_an_operator_of_ours(case):
    groups, options = CASES[case]
    layer = Layer(options)
    sizes = ({0: Dim.DYNAMIC, 2: Dim.DYNAMIC}, {0: Dim.DYNAMIC, 2: Dim.DYNAMIC}, {0: Dim.DYNAMIC})
    with written_out():
        exported = torch.export.export(layer, inputs(2, 5, 7, groups), dynamic_shapes=sizes)
    assert not any("regard" in str(node.target) for node in exported.graph.nodes)
    program = exported.module()
    for size in [(2, 5, 7), (3, 11, 11), (1, 1, 1), (1, 2, 90)]:
        args = inputs(*size, groups)
        torch.testing.assert_close(program(*args), layer(*args), atol=1e-5, rtol=1e-5)


def test_outside_of_the_block_the_operator_is_back():
    with written_out():
        pass
    layer = Layer(CASES["lengths"][1])
    program = torch.export.export(layer, inputs(2, 5, 7, H))
    assert any("regard.attend" in str(node.target) for node in program.graph.nodes)


def test_half_precision_is_added_up_in_float32():
    query, key, n = inputs(2, 5, 7, H)
    halves, layer = (query.half(), key.half(), n), Layer(lambda w, n: {"mask": rg.lengths(n)})
    with written_out():
        program = torch.export.export(layer, halves).module()
    out = program(*halves)
    assert out.dtype == torch.float16
    torch.testing.assert_close(out, layer(*halves), atol=2e-3, rtol=2e-3)


REFUSED = {
    "documents": (
        lambda w, n: {"mask": rg.documents([0, 0, 1, 1, 2, 2, 2])},
        r"mask must be made of lengths\(\), prefix\(\), .* to be written out; got _Documents",
    ),
    "sparsemax": (
        lambda w, n: {"weighting": rg.Sparsemax()},
        r"weighting must be Softmax\(\) to be written out; got Sparsemax",
    ),
    "sink": (
        lambda w, n: {"weighting": rg.Softmax(0.5)},
        r"weighting must be Softmax\(\) to be written out; got a sink\.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_formula_is_refused(case):
    options, message = REFUSED[case]
    with written_out(), pytest.raises(SettingError, match=message):
        torch.export.export(Layer(options), inputs(2, 7, 7, H))
