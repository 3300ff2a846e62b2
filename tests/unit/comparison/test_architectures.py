"""Every layer counts what its closed form says, reaches as far, and grows as it must."""

import json
from math import ceil, log

import pytest
import torch
from tests.profiling import profiled

import regard as rg
from regard.comparison import architectures
from regard.comparison.architectures import LENGTHS, count_measurements
from regard.comparison.candidates import CANDIDATES, LayerSizes, Recurrence
from regard.comparison.dispatch import peak_bytes, trace
from regard.comparison.growth import Growth
from regard.comparison.paths import path_length
from regard.errors import SettingError

CLOSED = {
    "fully-connected": lambda n, d, k, r: n * n * d * d,
    "convolution": lambda n, d, k, r: k * n * d * d,
    "dilated": lambda n, d, k, r: k * n * d * d,
    "recurrence": lambda n, d, k, r: 2 * n * d * d,
    "attention-written": lambda n, d, k, r: 2 * n * n * d,
    "attention": lambda n, d, k, r: 2 * n * n * d,
    "restricted-written": lambda n, d, k, r: 2 * n * r * d,
}


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("size", [(13, 5, 3, 7), (17, 3, 2, 11)], ids=str)
def test_counts_are_the_closed_forms(name, size):
    n, d, k, r = size
    sizes = LayerSizes(length=n, width=d, kernel=k, window=r)
    counted = trace(CANDIDATES[name](sizes), torch.randn(n, d)).multiply_adds
    assert counted == CLOSED[name](n, d, k, r) == CANDIDATES[name].multiply_adds(sizes)


def test_projections_add_four_products_with_a_square_matrix():
    for name in ("attention-written", "attention", "restricted-written"):
        sizes = LayerSizes(length=13, width=5, window=7, projections=True)
        counted = trace(CANDIDATES[name](sizes), torch.randn(13, 5)).multiply_adds
        assert counted == CLOSED[name](13, 5, 3, 7) + 4 * 13 * 25
        assert counted == CANDIDATES[name].multiply_adds(sizes)


def test_attend_computes_no_more_of_a_window_than_its_blocks_hold():
    sizes = LayerSizes(length=1024, width=8, window=32)
    name = "restricted"
    counted = trace(CANDIDATES[name](sizes), torch.randn(1024, 8)).multiply_adds
    closed = CANDIDATES[name].multiply_adds(sizes)
    assert closed < counted < 4 * closed


PATHS = {
    "fully-connected": lambda n, k, r: 1,
    "convolution": lambda n, k, r: ceil((n - 1) / (k - 1)),
    "dilated": lambda n, k, r: ceil(log(n) / log(k) - 1e-9),
    "recurrence": lambda n, k, r: n,
    "attention-written": lambda n, k, r: 1,
    "attention": lambda n, k, r: 1,
    "restricted-written": lambda n, k, r: ceil((n - 1) / (r - 1)),
    "restricted": lambda n, k, r: ceil((n - 1) / (r - 1)),
}


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("n", [2, 9, 10, 27, 28])
def test_paths_found_by_the_gradient_are_the_closed_forms(name, n):
    sizes = LayerSizes(length=n, width=2, kernel=3, window=5)
    found = path_length(CANDIDATES[name], sizes)
    assert found == PATHS[name](n, 3, 5) == CANDIDATES[name].longest_path(sizes)


@pytest.fixture(scope="module")
def measured():
    return architectures(
        lengths=(64, 128, 256, 512), width=8, window=32, path_lengths=(9, 13), repeats=1
    )


def test_counted_operations_grow_by_their_power(measured):
    for row in measured.rows:
        if row.name != "restricted":  # short ones are computed whole
            assert row.operations_growth.exponent == pytest.approx(row.expected[0], abs=1e-9)


def test_a_window_by_attend_grows_with_the_length_alone():
    lengths = (512, 1024, 2048)
    traced = [
        trace(CANDIDATES["restricted"](LayerSizes(length=n)), torch.randn(n, 64)) for n in lengths
    ]
    grown = Growth.fit(lengths, [one.multiply_adds for one in traced])
    assert grown.exponent == pytest.approx(1, abs=0.03)
    assert len({one.steps for one in traced}) == 1


def test_only_the_recurrence_waits_longer_for_longer_inputs(measured):
    for row in measured.rows:
        if row.name == "recurrence":
            # One product, then for every position a product, a sum and a tanh, then joining them.
            assert row.dependent_steps == tuple(3 * n + 1 for n in row.lengths)
            assert row.steps_growth.exponent == pytest.approx(1, abs=0.01)
        elif row.name != "restricted":
            assert len(set(row.dependent_steps)) == 1
        else:
            assert row.dependent_steps[-1] == row.dependent_steps[-2] < 20


def test_memory_is_quadratic_as_written_and_linear_by_attend(measured):
    assert measured["attention-written"].bytes_growth.exponent == pytest.approx(2, abs=0.1)
    assert measured["attention"].bytes_growth.exponent == pytest.approx(1, abs=0.1)
    assert measured["restricted"].bytes_growth.exponent < 1.1
    assert measured["recurrence"].bytes_growth.exponent == pytest.approx(1, abs=0.1)
    assert measured["fully-connected"].bytes_growth.exponent == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("name", CANDIDATES)
def test_bytes_agree_with_what_the_allocator_was_asked_for(name):
    n, d = (64, 16) if name == "fully-connected" else (512, 64)
    layer = CANDIDATES[name](LayerSizes(length=n, width=d))
    states = torch.randn(n, d, requires_grad=True)

    def train():
        layer(states).sum().backward()
        states.grad = None
        layer.zero_grad()

    train()
    counted, asked = peak_bytes(train), profiled(train).peak
    # Kernels take some of their own while they run; the fused one a few blocks.
    assert 0.6 * asked < counted <= asked


def test_both_ways_of_attention_and_of_a_window_are_the_same_function():
    states = torch.randn(37, 5)
    for written, run in (("attention-written", "attention"), ("restricted-written", "restricted")):
        for projections in (False, True):
            sizes = LayerSizes(length=37, width=5, window=7, projections=projections)
            one, other = CANDIDATES[written](sizes), CANDIDATES[run](sizes)
            other.load_state_dict(one.state_dict())
            torch.testing.assert_close(one(states), other(states))
    mask = rg.causal() & rg.window(before=6)
    torch.testing.assert_close(
        CANDIDATES["restricted"](LayerSizes(length=37, width=5, window=7))(states),
        rg.weights(states, states, mask=mask) @ states,
    )


def test_a_recurrence_is_as_many_hops_as_there_are_positions():
    layer = Recurrence(LayerSizes(length=7, width=3))
    inputs = torch.randn(7, 3)
    states = layer.start(inputs)
    for _ in range(7):
        states = layer.hop(inputs, states)
    torch.testing.assert_close(states, layer(inputs))


def test_a_record_is_plain_data_and_a_report_has_every_layer(measured):
    again = json.loads(json.dumps(measured.to_dict()))
    assert again["comparison"] == "architectures"
    assert [row["name"] for row in again["rows"]] == list(CANDIDATES)
    report = measured.report()
    assert all(len(table.rows) == len(CANDIDATES) for table in report.tables)
    assert all(len(row) == len(table.columns) for table in report.tables for row in table.rows)
    assert len(report.pictures) == 5


def test_lengths_that_need_too_much_are_left_out():
    found = architectures(
        lengths=(4, 8, 64), width=8, names=("fully-connected",), path_lengths=(), most_bytes=2**16
    )
    assert found.rows[0].lengths == (4, 8)
    assert found.rows[0].seconds_growth is None
    found.report()


def test_progress_is_told_of_every_measurement():
    told = []
    names = ("convolution", "attention")
    architectures(
        lengths=(4, 6, 8), width=2, names=names, path_lengths=(4,), repeats=1, progress=told.append
    )
    assert sum(told) == count_measurements((4, 6, 8), names) == 8
    assert count_measurements(LENGTHS) == 8 * len(CANDIDATES)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"lengths": (8, 16)},
            r"lengths must be three numbers or more, ascending from 2; got 8, 16",
        ),
        ({"lengths": (8, 4, 16)}, "lengths must be three numbers .* got 8, 4, 16"),
        ({"lengths": (1, 2, 3)}, "ascending from 2; got 1, 2, 3"),
        ({"window": 1}, "window must be at least 2; got 1. One key alone is the query's own"),
        ({"kernel": 1}, "kernel must be at least 2; got 1"),
        ({"width": 0}, "width must be at least 1; got 0"),
        ({"repeats": 0}, "repeats must be at least 1; got 0"),
        ({"names": ("atention",)}, "architecture must be one of .* Did you mean 'attention'"),
        ({"device": "cuda:99"}, "device must be .*; got 'cuda:99', but"),
        ({"device": "gpu"}, "device must be one of auto, cpu, cuda, mps; got 'gpu'"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(map(str, value)),
)
def test_what_cannot_be_measured_is_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        architectures(**settings)
