import inspect

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import regard as rg
from regard.errors import RegardError, SettingError, ShapeError

pytestmark = pytest.mark.usefixtures("unchecked_shapes")

B, H, N, M, D, E = 2, 3, 31, 37, 11, 13
BOOLS = torch.ones(N, M, dtype=torch.bool)
KINDS = (
    "got {}. Use lengths\\(\\), causal\\(\\), window\\(\\), documents\\(\\), prefix\\(\\), dense"
)


def make(dtype=torch.float32):
    shapes = {"query": (B, H, N, D), "key": (B, H, M, D), "value": (B, H, M, E)}
    return {name: torch.randn(shape).to(dtype) for name, shape in shapes.items()}


def elsewhere(*shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype, device="meta")


# What the net of shape checks would stop here is made in the test, where it is off.
def long_ones(*shape):
    return torch.ones(shape, dtype=torch.long)


SHAPES = [
    ({"key": torch.randn(B, H, M, 5)}, "key must be as wide as query, D = 11; got 5"),
    ({"value": torch.randn(B, H, 5, E)}, "value must have as many positions as key, M = 37; got 5"),
    ({"query": torch.randn(D)}, r"must have at least two axes, \(N, D\), .* got \(11,\)"),
    (
        {"query": torch.randn(B, 4, N, D)},
        "query heads must be a multiple of key heads; got H=4, G=3. Heads are the third axis",
    ),
    (
        {"query": torch.randn(5, H, N, D)},
        r"must agree in their leading axes; got \(5, 3, 31, 11\), \(2, 3, 37, 11\) and",
    ),
    ({"mask": BOOLS.mT}, r"mask must broadcast to .* = \(2, 3, 31, 37\); got \(37, 31\)"),
    ({"mask": rg.causal() & rg.dense(BOOLS.mT)}, r"mask must broadcast to .* got \(37, 31\)"),
    ({"mask": rg.lengths([1, 2, 3])}, r"lengths must have shape \(B,\) = \(2,\) or .* got \(3,\)"),
    ({"mask": rg.lengths([1, M + 1])}, "lengths must be at most M = 37; got 38"),
    ({"mask": rg.prefix([-1, 2])}, "prefix must be at least 0; got -1"),
    (
        {"mask": rg.documents(long_ones(N + 1), long_ones(M))},
        r"documents must have shape \(N,\) = \(31,\) or \(B, N\) = \(2, 31\); got \(32,\)",
    ),
    (
        {"mask": rg.where(lambda b, h, i, j: torch.ones(5, 7, dtype=torch.bool))},
        r"where must give a tensor that broadcasts to \(B, H, n, m\) .* got \(5, 7\)",
    ),
    ({"bias": torch.ones(M, N)}, r"bias must broadcast to .* = \(2, 3, 31, 37\); got \(37, 31\)"),
    ({"bias": rg.alibi(torch.ones(5))}, r"slopes must have shape \(H,\) = \(3,\); got \(5,\)"),
    ({"bias": rg.relative(torch.ones(8, 5))}, r"table must have shape .* got \(8, 5\)"),
    ({"bias": rg.shaw(torch.ones(3, 5))}, r"key_table must have shape .* got \(3, 5\)"),
    (
        {"score": rg.Additive(torch.ones(5))},
        r"w must broadcast to \(H, D\) = \(3, 11\); got \(5,\)",
    ),
    ({"score": rg.Bilinear(torch.ones(D, 5))}, r"w must have shape \(D, K\) = .* got \(11, 5\)"),
    ({"weighting": rg.Softmax(sink=torch.ones(5))}, r"sink must have shape \(\) or .* got \(5,\)"),
]
DTYPES = [
    ({"mask": torch.zeros(N, M)}, "mask must be boolean, .* got torch.float32. .* pass bias="),
    ({"mask": long_ones(N, M)}, "mask must be boolean, .* got torch.int64"),
    (
        {"mask": rg.where(lambda b, h, i, j: i - j)},
        "where must give a boolean tensor; got torch.int64",
    ),
    ({"bias": BOOLS}, "bias must be of floating point; got torch.bool. .* pass mask="),
    ({"bias": long_ones(N, M)}, "bias must be of floating point; got torch.int64"),
    ({"key": torch.randn(B, H, M, D).half()}, "must have one dtype; got .*float32, .*float16 and"),
    *(
        (
            make(dtype),
            f"query must be of floating point, one of float64, .*; got {dtype}. Convert it",
        )
        for dtype in (torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn)
    ),
    (
        lambda: {"score": rg.Additive(long_ones(D))},
        "score must be made with floating point; got torch.int64",
    ),
    (
        lambda: {"bias": rg.alibi(long_ones(H))},
        "bias must be made with floating point; got torch.int64",
    ),
    (
        lambda: {"weighting": rg.Softmax(sink=long_ones(H))},
        "sink must be made with floating point; got .*int64",
    ),
]
DEVICES = [
    ({"key": elsewhere(B, H, M, D)}, "must be on one device; got cpu, meta and cpu"),
    ({"value": elsewhere(B, H, M, E)}, "must be on one device; got cpu, cpu and meta"),
    *(
        (options, f"{name} must be on the device of the query, cpu; got meta. [MU]")
        for name, options in (
            ("mask", {"mask": elsewhere(N, M, dtype=torch.bool)}),
            ("mask", {"mask": rg.causal() & elsewhere(N, M, dtype=torch.bool)}),
            ("lengths", {"mask": rg.lengths(elsewhere(B, dtype=torch.long))}),
            ("documents", {"mask": rg.documents(elsewhere(N, dtype=torch.long), long_ones(M))}),
            ("bias", {"bias": elsewhere(N, M)}),
            ("bias", {"bias": rg.alibi(elsewhere(H))}),
            ("bias", {"bias": rg.relative(elsewhere(8, H))}),
            ("bias", {"bias": rg.shaw(elsewhere(3, D))}),
            ("score", {"score": rg.Additive(elsewhere(D))}),
            ("score", {"score": rg.Bilinear(elsewhere(D, D))}),
            ("score", {"score": rg.Cosine(elsewhere())}),
            ("score", {"score": rg.Gaussian(elsewhere(D))}),
            ("score", {"score": rg.Gaussian(precision=elsewhere(D, D))}),
            ("score", {"score": rg.Laplace(elsewhere(H, D))}),
            ("score", {"score": rg.StudentT(elsewhere(H, 1))}),
            ("score", {"score": rg.Custom(lambda q, k, w: (q * w) @ k.mT, elsewhere(D))}),
            ("sink", {"weighting": rg.Softmax(sink=elsewhere(H))}),
        )
    ),
]
OF_THE_WRONG_KIND = [
    ({"query": [[1.0]]}, ShapeError, "query must be a tensor; got list"),
    ({"mask": 1.0}, ShapeError, f"mask must be a Mask or .* {KINDS.format('float')}"),
    ({"mask": True}, ShapeError, f"mask must be a Mask or .* {KINDS.format('bool')}"),
    ({"mask": rg.alibi()}, ShapeError, "mask must be a Mask or a boolean tensor"),
    ({"bias": 2.0}, ShapeError, r"bias must be a tensor or a rule such as alibi\(\); got float"),
    ({"bias": rg.causal()}, ShapeError, "bias must be a tensor or a rule"),
    ({"score": "dott"}, SettingError, r"score must be a Score such as .* got 'dott'. Scores are"),
    ({"score": None}, SettingError, r"score must be a Score such as ScaledDot\(\); got None"),
    ({"score": rg.Additive}, SettingError, "score must be a Score such as"),
    ({"weighting": "sparse"}, SettingError, r"weighting must be a Weighting .* got 'sparse'"),
    ({"dropout": 1.0}, SettingError, "dropout must be at least 0 and below 1; got 1.0"),
    ({"dropout": float("nan")}, SettingError, "dropout must be at least 0 and below 1; got nan"),
    ({"dropout": "0.1"}, SettingError, "dropout must be a number; got '0.1'"),
    ({"dropout": 0.1, "generator": 3}, SettingError, "generator must be a torch.Generator; got 3"),
    ({"backend": "spda"}, SettingError, "backend must be one of .* 'spda'. Did you mean 'sdpa'"),
    ({"backend": 3}, SettingError, "backend must be one of .* got 3"),
]
BAD = [
    *((options, ShapeError, message) for options, message in (*SHAPES, *DTYPES, *DEVICES)),
    *OF_THE_WRONG_KIND,
]


class Work(TorchDispatchMode):
    """Remembers the numbers that any operation made."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        storages = {each.untyped_storage().data_ptr() for each in args if torch.is_tensor(each)}
        for each in out if isinstance(out, (tuple, list)) else [out]:
            if torch.is_tensor(each) and each.is_floating_point():
                is_view = each.untyped_storage().data_ptr() in storages
                self.numbers = max(self.numbers, 0 if is_view else each.numel())
        return out


@pytest.mark.parametrize(("bad", "error", "message"), BAD)
def test_the_error_says_what_and_how_before_any_work(bad, error, message):
    bad = bad() if callable(bad) else bad
    for call in (rg.attend, rg.explain, rg.weights, rg.sample_key):
        parameters = inspect.signature(call).parameters
        if not bad.keys() <= parameters.keys() or (call is rg.weights and bad.keys() == {"key"}):
            continue
        inputs = {name: tensor for name, tensor in make().items() if name in parameters}
        with Work() as work, pytest.raises(error, match=message) as raised:
            call(**{**inputs, **bad})
        assert isinstance(raised.value, RegardError)
        # Not so much as one number for each query of one head.
        assert work.numbers < N


LONG = {name: torch.empty(1, 1, 1, D).expand(1, 1, 20_000, D) for name in ("query", "key")}
REFUSED = [
    ("sdpa", {"score": rg.Laplace(1.0)}, "the score is not a dot product"),
    ("sdpa", {"weighting": rg.Sparsemax()}, "the weighting is not softmax"),
    ("sdpa", {"dropout": 0.1}, "dropout must not depend on tile sizes"),
    ("sdpa", {"return_lse": True}, "the log-sum-exp is wanted"),
    ("sdpa", {**LONG, "bias": rg.alibi()}, "a rule of distances, which is not to become an N×M"),
    ("sdpa", {"bias": torch.ones(M, requires_grad=True)}, "the bias needs a gradient"),
    ("sdpa", {**make(torch.float64), "requires": "query"}, "gradients in float64"),
    (
        "sdpa",
        {**LONG, "mask": rg.causal(first=1)},
        "the mask would be an N×M matrix of more than 64",
    ),
    (
        "sdpa",
        {**LONG, "mask": rg.lengths([19_999]), "bias": torch.ones(20_000, 1)},
        "the mask and the bias together would be an N×M matrix of more than 64 MB",
    ),
    (
        "sdpa",
        {**LONG, "mask": rg.causal(), "bias": torch.ones(20_000)},
        "the mask and the bias together would be an N×M matrix of more than 64 MB",
    ),
    ("packed", {}, "the mask is not one of documents"),
    ("additive_cpu", {}, "the score is not additive"),
    (
        "additive_cpu",
        {"score": rg.Additive(torch.ones(D)), "bias": rg.alibi()},
        "a rule of distances",
    ),
    ("additive_triton", {"score": rg.Additive(torch.ones(D))}, "it is for NVIDIA GPUs"),
]


@pytest.mark.parametrize("call", [rg.attend, rg.explain])
@pytest.mark.parametrize(("backend", "options", "reason"), REFUSED)
def test_a_pinned_path_that_refuses_says_why(call, backend, options, reason):
    options = {**make(), **options}
    if "value" in options and options["key"] is LONG["key"]:
        del options["value"]
    if name := options.pop("requires", None):
        options[name] = options[name].clone().requires_grad_()
    expected = (
        f"backend must be able to serve the call; got '{backend}', but .*({reason}).*backend=None"
    )
    with Work() as work, pytest.raises(SettingError, match=expected):
        call(**options, backend=backend)
    assert work.numbers < N


def test_a_log_sum_exp_without_softmax_is_refused():
    with pytest.raises(SettingError, match=r"return_lse must go with Softmax\(\); got Sparsemax"):
        rg.attend(**make(), weighting=rg.Sparsemax(), return_lse=True)


@pytest.mark.parametrize("bias", [torch.ones(4000, 1), torch.ones(4000), torch.ones(1, 4000)])
@pytest.mark.parametrize("mask", [rg.causal(), rg.lengths([3999]), rg.causal(first=0)])
def test_what_would_become_a_matrix_goes_to_the_path_that_makes_none(monkeypatch, bias, mask):
    monkeypatch.setattr("regard.attention.backends.sdpa.LARGEST_MASK", 2**20)
    query = torch.zeros(1, 1, 4000, 2)
    is_matrix = mask.bind(1, 1, 4000, 4000).size > 4000 or bias.shape == (4000, 1)
    plan = rg.explain(query, query, mask=mask, bias=bias)
    assert (plan.backend in ("dot_cpu", "tiled")) == is_matrix


@pytest.mark.parametrize(
    ("make_it", "error", "message"),
    [
        (lambda: rg.window(before=1.5), SettingError, "before must be a whole number; got 1.5"),
        (lambda: rg.causal(first=0.5), SettingError, "first must be a whole number; got 0.5"),
        (lambda: rg.where(3), SettingError, "where must be given a function of batch"),
        (lambda: rg.lengths("abc"), ShapeError, "lengths must be integers; got 'abc'"),
        (lambda: rg.prefix([1, [2]]), ShapeError, "prefix must be integers; got"),
        (lambda: rg.relative([1.0]), ShapeError, "table must be a tensor; got list"),
        (lambda: rg.shaw([[1.0]]), ShapeError, "key_table must be a tensor; got list"),
        (lambda: rg.ScaledDot(scale="x"), SettingError, "scale must be a number; got 'x'"),
        (lambda: rg.ScaledDot(softcap=float("inf")), SettingError, "softcap must be a finite"),
        (lambda: rg.Softmax(sink="0"), SettingError, "sink must be a number; got '0'"),
        (lambda: rg.Softmax(sink=float("nan")), SettingError, "sink must be a finite number"),
        (lambda: rg.Laplace(0), SettingError, "bandwidth must be above 0; got 0"),
        (lambda: rg.Box(float("inf")), SettingError, "bandwidth must be a finite number; got inf"),
        (lambda: rg.StudentT(True), SettingError, "df must be a number; got True"),
        (lambda: rg.alibi(first=0.5), SettingError, "first must be a whole number; got 0.5"),
        (lambda: rg.shaw(torch.ones(3, 4), scale=float("nan")), SettingError, "scale must be a f"),
        (lambda: rg.documents("ab"), ShapeError, "documents must be integers; got 'ab'"),
    ],
)
def test_parts_that_cannot_be_made_say_so_at_once(make_it, error, message):
    with pytest.raises(error, match=message):
        make_it()


def test_no_heads_are_no_error():  # to torch 2.11, a division by zero that ends the process
    empty = torch.zeros(2, 0, 5, 4)
    for score in (None, rg.Gaussian(1.0), rg.Laplace(1.0)):
        options = {} if score is None else {"score": score}
        assert rg.attend(empty, empty, **options).shape == empty.shape
        assert rg.weights(empty, empty, **options).shape == (2, 0, 5, 5)


def test_weights_are_worked_out_in_float32_under_automatic_precision():
    query, key = torch.randn(2, 7, 16), torch.randn(2, 9, 16)
    with torch.autocast("cpu", torch.bfloat16):
        rows = rg.weights(query, key)
    assert torch.equal(rows, rg.weights(query, key))


@pytest.mark.parametrize(
    ("option", "ours"),
    [
        ("is_causal", r"mask=regard\.causal\(\)"),
        ("attn_mask", "mask=attn_mask, True where"),
        ("key_padding_mask", r"mask=regard\.lengths"),
        ("scale", r"score=regard\.ScaledDot\(scale=scale\)"),
        ("dropout_p", "dropout=dropout_p"),
        ("need_weights", r"regard\.weights"),
        ("maks", r"Did you mean mask\?"),
    ],
)
def test_an_option_of_another_library_is_answered_with_ours(option, ours):
    query, key, _ = make().values()
    for call in (rg.attend, rg.weights, rg.explain, rg.summarize):
        with pytest.raises(
            SettingError, match=rf"^{option} is not an option of {call.__name__}\..*{ours}"
        ):
            call(query, key, **{option: None})
