"""The experiments of ``examples/experiments`` show what the texts claim, and draw it."""

import json
import math
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import torch
from examples.experiments import (
    architectures,
    bandwidths,
    gradients,
    norms,
    positions,
    scores,
    seeds,
)
from tools.figures import seeds as seeds_figure

from regard.models.kernel_regression import SineExample
from regard.viewer.spread import draw_spread

pytestmark = pytest.mark.slow

COURSE = Path(__file__).parents[3] / "docs" / "course"


@pytest.mark.parametrize(
    ("main", "sizes"),
    [
        (architectures.main, {"lengths": [32, 64]}),
        (gradients.main, {"length": 8}),
        (scores.main, {"widths": [4, 64]}),
        (positions.main, {}),
        (norms.main, {"batches": 2}),
        (bandwidths.main, {"sizes": [50, 100]}),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value.__module__.rsplit(".")[-1],
)
def test_each_prints_and_draws(main, sizes, tmp_path, capsys):
    main(**sizes, out=tmp_path / "drawn.svg")
    plt.close("all")
    assert "<svg" in (tmp_path / "drawn.svg").read_text("utf-8")
    assert len(capsys.readouterr().out.splitlines()) > 3


@pytest.mark.skipif("not torch.__version__.startswith('2.13.')", reason="kernels of torch 2.13")
def test_the_chapter_shows_what_architectures_prints(tmp_path, capsys):
    architectures.main([64, 1024], tmp_path / "drawn.svg")
    printed = capsys.readouterr().out.splitlines()[1:]
    for name in ("self.md", "self.zh.md"):
        page = (COURSE / name).read_text("utf-8")
        table = re.search(r"n = 1024 .*MiB\n((?:.+\n)+)```", page)[1].splitlines()
        assert [line.split()[-3:] for line in table] == [line.split()[-3:] for line in printed]


def test_only_the_recurrence_starts_more_kernels_for_longer_inputs():
    for name, layer in architectures.LAYERS.items():
        short, long = (architectures.measure(layer, length, 8)[0] for length in (16, 32))
        assert (long > short) == (name == "recurrence")
    # Per position a product, a sum and a tanh; then all are joined.
    assert architectures.measure(architectures.recurrence, 16, 8)[0] == 3 * 16 + 3


def test_paths_found_by_the_gradient_are_the_closed_forms():
    for n in (2, 9, 10):
        lengths = {
            name: architectures.path(layer, n) for name, layer in architectures.LAYERS.items()
        }
        assert list(lengths.values()) == [math.ceil((n - 1) / 2), n, 1, 1]


def test_memory_is_quadratic_as_written_and_linear_by_attend():
    def growth(name):
        layer = architectures.LAYERS[name]
        short, long = (architectures.measure(layer, length, 8)[1] for length in (256, 512))
        return long / short

    assert growth("self-attention, as written") > 3.5
    assert growth("self-attention by attend") < 2.2


def test_a_recurrence_vanishes_below_radius_one_and_explodes_above():
    for radius in (0.5, 0.9):
        norms = gradients.norms(gradients.MODELS[f"RNN, radius {radius}"], 40, 16)
        assert gradients.factor(norms) == pytest.approx(radius, abs=0.01)
    assert gradients.factor(gradients.norms(gradients.MODELS["RNN, radius 1.5"], 40, 16)) > 1.05
    flat = gradients.norms(gradients.MODELS["RNN, radius 1.5"], 20, 16, input_scale=1.0)
    assert gradients.factor(flat) < 1


def test_attention_is_as_near_to_the_first_input_as_to_any():
    norms = gradients.norms(gradients.attention, 40, 16)
    assert gradients.factor(norms) == pytest.approx(1, abs=1e-2)
    plain, biased = (
        gradients.factor(gradients.norms(gradients.MODELS[name], 40, 16))
        for name in ("LSTM", "LSTM, forget bias 1")
    )
    assert plain < biased < 1


def test_norms_are_those_of_the_jacobian():
    norms = gradients.norms(lambda width: gradients.rnn(width, 0.7), 5, 3)
    torch.manual_seed(0)
    model = gradients.rnn(3, 0.7)
    inputs = 0.01 * torch.randn(5, 3).double()
    jacobian = torch.autograd.functional.jacobian(model, inputs)
    expected = [float(jacobian[:, 4 - back].norm()) for back in range(5)]
    assert norms.tolist() == pytest.approx(expected)


def test_the_softmax_of_dot_products_saturates_and_its_gradient_vanishes():
    near, far = scores.scores(4), scores.scores(1024)
    for name in ("dot", "bilinear"):
        assert scores.entropy(near[name]) > 1.5 > 0.3 > scores.entropy(far[name])
        assert scores.gradient(far[name]) < scores.gradient(near[name]) / 3
        assert float(far[name].var()) == pytest.approx(1024, rel=0.5)
    for name in ("scaled dot", "additive"):
        assert scores.entropy(far[name]) == pytest.approx(scores.entropy(near[name]), abs=0.3)
        assert scores.gradient(far[name]) == pytest.approx(scores.gradient(near[name]), rel=0.25)


def test_a_shift_is_a_linear_map_of_waves():
    for shift in (1, 5, 20):
        assert positions.shift_error(shift) < 1e-5
    assert positions.rotation(0).equal(torch.eye(positions.WIDTH))


def test_only_without_positions_and_mask_a_shuffle_changes_nothing():
    errors = {name: positions.order_error(way) for name, way in positions.WAYS.items()}
    assert errors.pop("none") < 1e-5
    assert all(error > 0.01 for error in errors.values())


def test_a_batch_norm_depends_on_its_batch_and_a_layer_norm_does_not():
    level, uneven = norms.jitter(0, 20), norms.jitter(31, 20)
    assert level["layer norm"] < 1e-5 > uneven["layer norm"]
    assert level["batch norm"] == pytest.approx(level["batch norm, padding counted"])
    assert uneven["batch norm, padding counted"] > 1.2 * uneven["batch norm"] > 0.01


def test_longer_inputs_come_out_of_a_batch_norm_too_small():
    short, long = norms.deviation_in_use(1, 20), norms.deviation_in_use(16, 20)
    assert short["layer norm"] == pytest.approx(1, abs=0.02)
    assert long["layer norm"] == pytest.approx(1, abs=0.02)
    assert long["batch norm"] < 0.8 * short["batch norm"]


def test_only_a_shrinking_bandwidth_finds_the_curve():
    few, many = 50, 5000
    for name, way in bandwidths.WAYS.items():
        ratio = bandwidths.error(many, way(many)) / bandwidths.error(few, way(few))
        assert (ratio < 0.5) == (name == "bandwidth n^(-1/5)")
    example = SineExample.draw(0, count=few)
    weights = torch.exp(-((example.queries - example.places.T) ** 2) / 2)
    predicted = (weights @ example.targets) / weights.sum(1, keepdim=True)
    expected = float((predicted - example.truth).square().mean().sqrt())
    assert bandwidths.error(few, 1.0) == pytest.approx(expected, rel=1e-4)


def test_seeds_are_trained_once_and_their_weights_are_stored(tmp_path, capsys):
    files = {"folder": tmp_path / "runs", "out": tmp_path / "a.svg", "data": tmp_path / "a.json"}
    seeds.main(2, **files, updates=2)
    printed = capsys.readouterr().out
    assert "2 runs" in printed
    assert "<svg" in files["out"].read_text("utf-8")
    stored = json.loads(files["data"].read_text("utf-8"))
    assert len(stored["weights"]) == len(stored["answers"]) == 2
    assert stored["weights"][0] != stored["weights"][1]
    seeds.main(2, **files, updates=9)  # those of the folder, as they are
    assert capsys.readouterr().out.endswith(printed[printed.index("seed 1") :])
    plt.close("all")


@pytest.mark.parametrize("page", ["seeds.md", "seeds.zh.md"])
def test_the_page_of_seeds_has_what_the_command_stored(page):
    drawn = draw_spread(seeds_figure.spread())
    assert drawn in (COURSE.parent / page).read_text("utf-8")
    spread = seeds_figure.spread()
    assert len(spread.weights) == 8
    votes = dict(zip(spread.output_tokens, spread.votes, strict=True))
    assert votes["China"] == [("中", 6), ("国", 2)]
    assert all(votes[word][0][1] == 8 for word in ("I", "love", "."))
