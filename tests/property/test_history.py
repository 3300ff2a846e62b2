"""Calls in any order, and from any thread: each is answered as where none came before it."""

import sys
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import NamedTuple

import pytest
import torch

import regard as rg
from regard.attention.call import plan
from regard.attention.masks import base, bound
from regard.errors import RegardError

pytestmark = pytest.mark.usefixtures("unchecked_shapes")

LEADING = [(), (2,), (3,), (2, 1), (2, 3), (3, 1), (3, 2), (2, 2, 3), (1, 2, 3)]
MASKS = {
    "none": lambda: None,
    "causal": rg.causal,
    "window": lambda: rg.window(before=2, after=1, first=0),
    "length": lambda: rg.lengths(4),
    "lengths": lambda: rg.lengths([3, 5]),
    "lengths of queries": lambda: rg.lengths(torch.arange(15).reshape(3, 5) % 6),
    "prefix": lambda: rg.prefix([1, 9]) | rg.causal(),
    "documents": lambda: rg.documents([0, 0, 1, 1, 1]),
    "batch, queries, keys": lambda: rg.dense(_some(3, 5, 5)),
    "batch, heads, queries, keys": lambda: rg.dense(_some(2, 3, 5, 5)),
    "keys": lambda: ~rg.dense(_some(2, 1, 1, 5)),
    "rule": lambda: rg.where(lambda batch, head, query, key: (query + key + batch) % 3 > 0),
    "a tensor": lambda: _some(5, 5),
    "numbers": lambda: torch.zeros(5, 5),
    "a list": lambda: [[True] * 5] * 5,
}
OPTIONS = [
    *[{}] * 8,
    {"score": rg.ScaledDot(scale=2.0)},
    {"score": rg.ScaledDot(softcap=2.0)},
    {"score": rg.Gaussian(2.0)},
    {"score": "dot"},
    {"weighting": rg.Softmax(sink=1.0)},
    {"weighting": rg.Sparsemax()},
    {"bias": rg.alibi()},
    {"bias": torch.linspace(-1, 1, 5)},
    {"bias": 0.5},
    {"dropout": 1.5},
    {"dropout": "half"},
    {"backend": "sdpa"},
    {"backend": "additive_cpu"},
    {"backend": "sdp"},
    {"return_lse": True},
]


class Call(NamedTuple):
    """A call of the engine, with its numbers by seed."""

    seed: int
    shapes: list[tuple[int, ...]]
    dtypes: list[torch.dtype]
    mask: str
    options: dict[str, object]
    learns: bool
    is_poisoned: bool
    is_inference: bool


def _some(*shape):
    return torch.arange(torch.Size(shape).numel()).reshape(shape) * 7 % 11 > 3


def draw_call(draw):
    """A call that is right more often than not."""
    leading = draw.choice(LEADING)
    queries, keys, dim = draw.choice([5, 5, 5, 1, 7]), draw.choice([5, 5, 5, 7]), 8
    of_keys = leading if draw.random() < 0.8 else draw.choice(LEADING)
    shapes = [(*leading, queries, dim), (*of_keys, keys, dim), (*of_keys, keys, dim)]
    at = draw.randrange(3)
    if draw.random() < 0.1:
        shapes[at] = (*shapes[at][:-1], draw.choice([3, 8]))
    dtypes = [draw.choice([torch.float32] * 6 + [torch.float64, torch.bfloat16])] * 3
    if draw.random() < 0.1:
        dtypes[at] = draw.choice([torch.float32, torch.long, torch.bool])
    rest = [draw.random() < rate for rate in (0.4, 0.1, 0.1)]
    mask, options = draw.choice(list(MASKS)), draw.choice(OPTIONS)
    return Call(draw.randrange(99), shapes, dtypes, mask, options, *rest)


def draw_calls(draw, number):
    """Calls of which many differ from an earlier one by one thing."""
    calls = []
    for _ in range(number):
        call = draw_call(draw)
        if calls and draw.random() < 0.7:
            one, axis = draw.choice(calls[-5:]), draw.randrange(3)
            lifted = [(*shape[:axis], 1, *shape[axis:]) for shape in one.shapes]
            flat = [shape[:-3] + shape[-2:] for shape in one.shapes]
            field = draw.choice(["shapes", *Call._fields])
            value = draw.choice([lifted, flat]) if field == "shapes" else getattr(call, field)
            call = one._replace(**{field: value})
        calls.append(call)
    return calls


def answer(call, mask):
    """The answers to a call, or the errors: of ``attend``, ``explain`` and ``weights``."""
    numbers = torch.Generator().manual_seed(call.seed)
    inputs = [torch.randn(shape, generator=numbers) for shape in call.shapes]
    if call.is_poisoned:
        inputs[call.seed % 3].view(-1)[call.seed % 5] = float("nan")
    inputs = [each.to(dtype) for each, dtype in zip(inputs, call.dtypes, strict=True)]
    learned = [each.requires_grad_() for each in inputs if call.learns and each.is_floating_point()]
    options = {"mask": mask, **call.options}
    of_weights = {name: options[name] for name in options.keys() & {"score", "mask", "weighting"}}

    def attend():
        out = rg.attend(*inputs, **options)
        first = out[0] if isinstance(out, tuple) else out
        if not first.requires_grad:
            return out
        return [first, *torch.autograd.grad(first.sum(), learned, allow_unused=True)]

    with torch.inference_mode(call.is_inference):
        return [
            _or_error(attend),
            _or_error(lambda: str(rg.explain(*inputs, **options))),
            _or_error(lambda: rg.weights(*inputs[:2], **of_weights)),
        ]


def _or_error(function):
    try:
        return function()
    except RegardError as error:
        return error


def first_answer(call):
    """The answers where no call came before this one."""
    with pytest.MonkeyPatch.context() as patch:
        memory = bound.Memory()
        for module in (plan, base):
            patch.setattr(module, "MEMORY", memory)
        return answer(call, MASKS[call.mask]())


def compare(one, other):
    assert type(one) is type(other)
    if isinstance(one, str | RegardError):
        assert str(one) == str(other)
    else:
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 10))]
)
def test_no_call_is_answered_by_those_before_it(seed):
    draw, masks = Random(seed), {name: make() for name, make in MASKS.items()}
    errors = 0
    for call in draw_calls(draw, 300):
        before, alone = answer(call, masks[call.mask]), first_answer(call)
        for one, other in zip(before, alone, strict=True):
            compare(one, other)
        is_wrong, is_refused = (isinstance(each, RegardError) for each in alone[:2])
        assert is_wrong == is_refused  # ``explain`` checks alike, and attends to nothing
        errors += is_wrong
    assert 40 < errors < 260


@pytest.fixture
def _threads_switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(function, orders):
    with ThreadPoolExecutor(len(orders)) as pool:
        return list(pool.map(function, orders))


@pytest.mark.usefixtures("_threads_switch_often")
def test_threads_share_masks_and_memories_without_an_error():
    draw, masks = Random(0), {name: make() for name, make in MASKS.items()}
    calls = draw_calls(draw, 60)
    alone = [first_answer(call) for call in calls]
    orders = [Random(n).sample(range(len(calls)), len(calls)) for n in range(8)]
    answers = in_threads(
        lambda order: [answer(calls[n], masks[calls[n].mask]) for n in order], orders
    )
    for order, of_thread in zip(orders, answers, strict=True):
        for n, of_call in zip(order, of_thread, strict=True):
            for one, other in zip(of_call, alone[n], strict=True):
                compare(one, other)


@pytest.mark.usefixtures("_threads_switch_often")
def test_threads_share_what_a_mask_found_for_many_sizes():
    mask = rg.causal()

    def widths(sizes):
        return [mask.bind(1, 1, 1, keys).grid.keys for keys in sizes]

    orders = [[*Random(n).sample(range(9, 49), 40)] * 100 for n in range(8)]
    assert in_threads(widths, orders) == orders
