"""Gradients vanish and explode, dot products saturate, shifts are linear, batch norms jitter."""

import json

import pytest
import torch

from regard.comparison import bandwidths, gradients, norms, positions, scores
from regard.comparison.scores import _draw
from regard.errors import SettingError
from regard.models.kernel_regression import SineExample


@pytest.fixture(scope="module")
def faded():
    return gradients(length=40, width=16, radii=(0.5, 0.9, 1.5), draws=3)


def curve(found, title):
    return next(curve for curve in found.curves if curve.title == title)


def test_a_recurrence_below_radius_one_vanishes_at_that_rate(faded):
    for radius in (0.5, 0.9):
        of_radius = curve(faded, f"RNN, ρ = {radius}")
        assert of_radius.factor == pytest.approx(radius, abs=0.01)
        # No step can do better: tanh is nowhere steeper than one.
        for back, norm in enumerate(of_radius.norms):
            assert norm <= 1.001 * radius**back * of_radius.norms[0]


def test_above_it_explodes(faded):
    exploding = curve(faded, "RNN, ρ = 1.5")
    assert exploding.factor > 1.05
    assert min(exploding.low[-1], *exploding.low[-5:]) > 10 * exploding.norms[1]


def test_an_lstm_keeps_more_with_a_forget_bias(faded):
    plain, biased = curve(faded, "LSTM"), curve(faded, "LSTM, forget bias 1")
    assert plain.factor_high < biased.factor_low < 1


def test_attention_is_as_near_to_the_first_input_as_to_any(faded):
    attended = curve(faded, "self-attention")
    assert attended.factor == pytest.approx(1, abs=1e-3)
    assert attended.norms[-1] == pytest.approx(attended.norms[1], rel=0.05)


def test_large_inputs_flatten_tanh():
    found = gradients(length=20, width=16, radii=(1.5,), input_scale=1.0, draws=2)
    assert curve(found, "RNN, ρ = 1.5").factor < 1


def test_norms_are_those_of_the_jacobian():
    found = gradients(length=5, width=3, radii=(0.7,), draws=1)
    torch.manual_seed(0)
    cell = torch.nn.RNN(3, 3, bias=False).double()
    torch.nn.init.orthogonal_(cell.weight_hh_l0).data.mul_(0.7)
    inputs = 0.01 * torch.randn(5, 3, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda x: cell(x)[0][-1], inputs)
    expected = [jacobian[:, 4 - back].norm().item() for back in range(5)]
    assert found.curves[0].norms == pytest.approx(expected)


@pytest.fixture(scope="module")
def scored():
    return scores(widths=(4, 64, 1024), draws=3)


def test_the_dot_product_has_variance_d_and_the_scaled_one_has_one(scored):
    for title, expected in (("dot", scored.widths), ("bilinear", scored.widths)):
        assert curve(scored, title).variance == pytest.approx(expected, rel=0.5)
    assert curve(scored, "scaled dot").variance == pytest.approx((1, 1, 1), rel=0.25)


def test_the_softmax_of_dot_products_saturates_and_its_gradient_vanishes(scored):
    for title in ("dot", "bilinear"):
        of_score = curve(scored, title)
        assert of_score.entropy[0] > 1.5 > 0.3 > of_score.entropy[2]
        assert of_score.gradient[2] < of_score.gradient[0] / 3
    for title in ("scaled dot", "additive"):
        of_score = curve(scored, title)
        assert of_score.entropy[2] == pytest.approx(of_score.entropy[0], abs=0.3)
        assert of_score.gradient[2] == pytest.approx(of_score.gradient[0], rel=0.25)


def test_gradient_and_entropy_are_the_formulas():
    found = scores(widths=(8,), keys=7, queries=5, draws=2)
    generator = torch.Generator().manual_seed(8)
    norms_, entropies = [], []
    for _ in range(2):
        p = _draw(8, 7, 5, generator)["dot"].double().softmax(dim=-1)
        jacobian = torch.diag_embed(p) - p[:, :, None] * p[:, None]
        norms_.append(jacobian.flatten(1).norm(dim=1).mean().item())
        entropies.append(-(p * p.log()).sum(dim=1).mean().item())
    assert curve(found, "dot").gradient[0] == pytest.approx(sum(norms_) / 2)
    assert curve(found, "dot").entropy[0] == pytest.approx(sum(entropies) / 2)


@pytest.fixture(scope="module")
def placed():
    return positions(length=48, width=16)


def test_a_shift_is_a_linear_map_of_waves_and_not_of_random_numbers(placed):
    assert [shift.shift for shift in placed.shifts] == [1, 5, 20]
    for shift in placed.shifts:
        assert shift.error < 1e-5
        assert shift.fitted_error < 1e-9
        assert shift.random_error > 1


def test_measured_frequencies_are_those_of_the_formula(placed):
    for wave in placed.waves:
        assert wave.measured == pytest.approx(10000 ** (-2 * wave.pair / 16), rel=1e-6)
    assert placed.waves[0].period == pytest.approx(6.2832, abs=1e-3)


def test_bits_repeat_after_two_four_and_eight(placed):
    assert placed.bit_periods == (2, 4, 8)
    assert [int("".join(map(str, reversed(bits))), 2) for bits in placed.bits] == list(range(8))


def test_only_without_positions_and_mask_a_shuffle_changes_nothing(placed):
    found = {row.title: row for row in placed.shuffled}
    assert found.pop("none").shuffled < 1e-5
    assert all(row.shuffled > 0.01 for row in found.values())


def test_only_distances_count_for_rotary_positions_and_slopes(placed):
    unmoved = {row.title for row in placed.shuffled if row.moved < 1e-5}
    assert unmoved == {"none", "none, causal mask", "rotary", "ALiBi"}


@pytest.fixture(scope="module")
def normed():
    return norms(batch=8, mean_length=16, width=16, spreads=(0, 15), times=(1, 16), batches=40)


def test_a_layer_norm_does_not_depend_on_the_rest_of_its_batch(normed):
    layer, *batch = normed.curves
    assert max(layer.jitter) < 1e-5
    assert all(min(one.jitter) > 0.01 for one in batch)


def test_statistics_jitter_more_where_lengths_differ_most_of_all_with_padding(normed):
    plain, padded = normed.variance_jitter
    assert plain[0] == pytest.approx(padded[0])  # equal lengths: there is no padding
    assert plain[1] > plain[0]
    assert padded[1] > 1.5 * plain[1]


def test_longer_inputs_come_out_of_a_batch_norm_too_small(normed):
    layer, *batch = normed.curves
    assert layer.deviation == pytest.approx((1, 1), abs=0.02)
    assert all(one.deviation[1] < 0.8 * one.deviation[0] for one in batch)


@pytest.fixture(scope="module")
def widened():
    return bandwidths(sizes=(50, 2000, 50_000))


def test_only_a_shrinking_bandwidth_finds_the_curve(widened):
    average, fixed, shrinking = widened.curves
    assert all(error > 0.9 for error in average.error)
    # What is left is the distance of the smoothed curve: more points do not help.
    assert all(error > 0.6 for error in fixed.error)
    assert fixed.error[2] > 0.95 * fixed.error[1]
    assert max(fixed.error_spread[1:]) < 0.02
    for place in (0, 1):
        assert shrinking.error[place + 1] < shrinking.error[place] / 2
    assert shrinking.error[2] < 0.06


def test_the_error_is_that_of_the_formula(widened):
    example = SineExample.draw(0, count=50)
    x, y, asked = (t.double()[:, 0] for t in (example.places, example.seen, example.asked))
    guesses = []
    for place in asked:
        weights = torch.exp(-((place - x) ** 2) / 2)
        guesses.append((weights * y).sum() / weights.sum())
    error = (torch.stack(guesses) - example.truth[:, 0]).square().mean().sqrt()
    found = bandwidths(sizes=(50,), draws=2)
    other = 2 * found.curves[1].error[0] - float(error)
    assert found.curves[1].error[0] == pytest.approx(widened.curves[1].error[0], abs=0.1)
    assert found.curves[1].error_spread[0] == pytest.approx(
        abs(float(error) - other) / 2**0.5, rel=1e-3
    )
    assert found.curves[2].bandwidths[0] == pytest.approx(50**-0.2)
    wider = bandwidths(sizes=(50,), bandwidth=2.0, draws=2)
    assert wider.curves[1].error[0] > found.curves[1].error[0]


@pytest.mark.parametrize("fixture", ["faded", "scored", "placed", "normed", "widened"])
def test_records_are_plain_and_reports_complete(fixture, request):
    found = request.getfixturevalue(fixture)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["comparison"]
    report = found.report()
    assert report.tables
    assert report.pictures
    for table in report.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)


@pytest.mark.parametrize(
    ("comparison", "settings", "message"),
    [
        (gradients, {"length": 3}, "length must be at least 4; got 3"),
        (gradients, {"radii": (0.5, 0)}, "radius must be above 0; got 0"),
        (gradients, {"input_scale": 0}, "input_scale must be above 0; got 0"),
        (scores, {"widths": (16, 4)}, "widths must be numbers from 1, ascending; got 16, 4"),
        (scores, {"draws": 1}, "draws must be at least 2; got 1. One draw has no spread"),
        (scores, {"keys": 1}, "keys must be at least 2; got 1"),
        (positions, {"width": 5}, "width must be even; got 5. Waves come in pairs"),
        (positions, {"length": 4}, "length must be at least 8; got 4"),
        (positions, {"shifts": (0,)}, "shift must be at least 1; got 0"),
        (norms, {"spreads": (32,)}, "spreads must be from 0 to below mean_length=32; got 32"),
        (norms, {"times": (0,)}, "times must be numbers from 1; got 0"),
        (norms, {"batch": 1}, "batch must be at least 2; got 1"),
        (bandwidths, {"sizes": ()}, "sizes must be numbers from 2, ascending; got none"),
        (bandwidths, {"bandwidth": 0.0}, "bandwidth must be above 0; got 0"),
        (bandwidths, {"draws": 1}, "draws must be at least 2; got 1. One draw has no spread"),
    ],
    ids=lambda value: value.__name__ if callable(value) else str(value)[:20],
)
def test_numbers_out_of_range_are_refused(comparison, settings, message):
    with pytest.raises(SettingError, match=message):
        comparison(**settings)
