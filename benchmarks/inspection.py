"""Looking inside: what it costs beside the same work without.

    python -m benchmarks.inspection [--only summary ...] [--rounds 5] [--threads 1 2] [--dry]

Each row of ``ROWS`` has two sides, ours and the work beside it, which make the call that is timed.
Every sample is taken in a process of its own, and the sides alternate: with one thread, and with
one for every core.
"""

import resource
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import tokenizers
import torch
import transformers
from torch.nn.functional import scaled_dot_product_attention

import regard as rg
from benchmarks.measuring import (
    Figure,
    Measured,
    alternate,
    apart,
    measure_speed,
    paired_ratio,
    sized,
)
from regard.attention import causal, head_scores, summarize

Call = partial[Any] | Callable[[], object]
NAME = "inspection"
SHORT, LONG, LONGEST = sized((512, 8192, 16384), (16, 128, 256))
LAYERS, HEADS, HEAD_DIM = sized((4, 8, 64), (2, 2, 8))
PATCHED, PAIR = sized((12, 32), (2, 8))  # layers, and heads of each; tokens
WORDS = 1000  # different tokens


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the record."""

    what: str
    beside: str
    bar: str
    ours: Callable[[], Call]
    theirs: Callable[[], Call]
    repeats: int = 3  # calls that are timed, after one that is not; 0 times the first
    is_more: bool = False  # whether bytes are those beyond the inputs, or all of the process
    page: Callable[[], float] | None = None  # bytes that it adds to a page


def peak_bytes() -> float:
    """The most memory that this process has held, which Linux has in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def _inputs(N: int, *, is_causal: bool) -> tuple[list[Any], dict[str, Any]]:
    torch.manual_seed(0)
    mask = {"mask": causal()} if is_causal else {}
    return [torch.randn(1, 8, N, 64) for _ in range(3)], mask


def fused(*, is_causal: bool = False) -> Call:
    tensors, _ = _inputs(LONG, is_causal=is_causal)
    return partial(scaled_dot_product_attention, *tensors, is_causal=is_causal)


def summary(*, is_causal: bool = False) -> Call:
    (query, key, _), mask = _inputs(LONG, is_causal=is_causal)
    summarize(query[:, :, :64], key[:, :, :64], **mask)
    return partial(summarize, query, key, **mask, top=8, map=64)


def scores() -> Call:
    (query, key, _), mask = _inputs(LONG, is_causal=True)
    return partial(head_scores, query, key, torch.randint(0, WORDS, (LONG,)).tolist(), **mask)


def _model_and_ids(layers: int, heads: int, head_dim: int, length: int) -> tuple[Any, Any]:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=WORDS,
        hidden_size=heads * head_dim,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=1376,
        max_position_embeddings=length,
        attn_implementation="sdpa",
    )
    return transformers.LlamaForCausalLM(config).eval(), torch.randint(1, WORDS, (1, length))


def plain(length: int) -> Call:
    model, ids = _model_and_ids(LAYERS, HEADS, HEAD_DIM, length)
    return partial(model.model, input_ids=ids, use_cache=False)


def watched(length: int) -> Call:
    call = plain(length)

    def look() -> None:
        with rg.watch(call.func) as seen:
            call()
        assert len(seen) == LAYERS

    return look


def gradients() -> Call:
    model, ids = _model_and_ids(LAYERS, HEADS, HEAD_DIM, SHORT)

    @torch.enable_grad()
    def train() -> None:
        model(ids, labels=ids).loss.backward()

    return train


def contributions() -> Call:
    model, ids = _model_and_ids(LAYERS, HEADS, HEAD_DIM, SHORT)
    return partial(rg.attribute, model, ids, method="gradient_times_input")


def explained_bytes() -> float:
    """Size of a page with contributions, predictions by layer and losses, less one without."""
    model, ids = _model_and_ids(LAYERS, HEADS, HEAD_DIM, SHORT)
    words = tokenizers.models.WordLevel({f"w{n}": n for n in range(WORDS)}, unk_token="w0")
    made = tokenizers.Tokenizer(words)
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="w0")
    text = " ".join(f"w{token}" for token in ids[0].tolist())
    pages = [rg.look(each, tokenizer, text, neurons=[]).page() for each in (model, model.model)]
    return float(len(pages[0]) - len(pages[1]))


def patched() -> Call:
    model, ids = _model_and_ids(PATCHED, PATCHED, 32, PAIR)
    return partial(rg.patch, model, ids, ids.roll(1))


def forwards() -> Call:
    """As many forward passes as there are heads, in batches of 64."""
    model, ids = _model_and_ids(PATCHED, PATCHED, 32, PAIR)
    sizes = [min(64, PATCHED**2 - first) for first in range(0, PATCHED**2, 64)]
    return lambda: [model(ids.expand(size, -1)) for size in sizes]


_SUM = "Summary (entropy, received mass, top 8, map of 64 × 64), N = 8,192{}, H 8, D 64, float32"
_WATCH = "`watch` on a Llama-shaped model (4 layers, 8 heads of 64, random), N = {:,}"
_FUSED, _PLAIN = "torch's fused kernel alone", "its plain forward, with torch's fused kernel"
_SCORES = "`head_scores` of 8,192 tokens, causal, H 8, D 64, float32"
_GRADIENTS = "Gradient × input of a Llama-shaped model (4 layers, 8 heads of 64), 512 tokens"
_PATCH = "`patch` of all heads of a Llama-shaped model (12 × 12 heads of 32), 32 tokens"
_OF_PAST = {"is_causal": True}
ROWS = {
    "summary": Row(_SUM.format(""), _FUSED, "1.3 × and 0.25 GB", summary, fused, is_more=True),
    "summary_causal": Row(
        *(_SUM.format(", causal"), _FUSED, "1.3 × and 0.25 GB"),
        *(partial(summary, **_OF_PAST), partial(fused, **_OF_PAST)),
        is_more=True,
    ),
    "watch_512": Row(
        *(_WATCH.format(SHORT), _PLAIN, "1.3 ×", partial(watched, SHORT), partial(plain, SHORT)),
        repeats=sized(9, 1),
    ),
    "watch_16384": Row(
        *(_WATCH.format(LONGEST), _PLAIN, "1.7 × and 1.5 GB"),
        *(partial(watched, LONGEST), partial(plain, LONGEST)),
        repeats=0,
    ),
    "head_scores": Row(_SCORES, "`summarize`", "1.5 ×", scores, partial(summary, **_OF_PAST)),
    "attribution": Row(
        *(_GRADIENTS, "a forward and a backward pass", "2 ×, 1.5 MB more in a page"),
        *(contributions, gradients),
        page=explained_bytes,
    ),
    "patching": Row(_PATCH, "144 passes in batches of 64", "1.2 ×", patched, forwards),
}


def measure_here(name: str, side: str) -> dict[str, float]:
    """One sample, in this process."""
    row = ROWS[name]
    call = (row.ours if side == "ours" else row.theirs)()
    before = peak_bytes() if row.is_more else 0.0
    seconds = []
    for _ in range(1 + row.repeats):
        start = time.perf_counter()
        with torch.no_grad():
            call()
        seconds.append(time.perf_counter() - start)
    sample = {"seconds": statistics.median(seconds[1:] or seconds), "bytes": peak_bytes() - before}
    if row.page is not None and side == "ours":
        sample["page"] = row.page()
    return sample


def measure(name: str, threads: int, rounds: int) -> Iterator[Measured]:
    """A row: both sides in processes of their own."""
    row = ROWS[name]
    sides = {
        side: partial(apart, f"benchmarks.{NAME}", "--side", name, side, threads=threads)
        for side in ("ours", "theirs")
    }
    samples = alternate(sides, rounds)
    ours, theirs = ([each["seconds"] for each in samples[side]] for side in sides)
    ratio, peak = paired_ratio(ours, theirs), max(each["bytes"] for each in samples["ours"])
    size = f"{peak / 1e9:.2f} GB {'more' if row.is_more else 'held by the process'}"
    if row.page is not None:
        size = f"{max(each['page'] for each in samples['ours']) / 1e6:.2f} MB more in a page"
    figure = Figure(
        what=row.what,
        ours=f"{statistics.median(ours):.2f} s, {size}",
        beside=f"{row.beside}: {statistics.median(theirs):.2f} s",
        note=f"{ratio.median:.2f} × its time, ±{ratio.relative:.0%}; asked for: at most {row.bar}; "
        f"threads: {threads}",
    )
    yield f"{name}, threads: {threads}", samples, [figure]


if __name__ == "__main__":
    measure_speed(
        NAME,
        title="Looking inside, beside the same work without",
        about=__doc__,
        rounds=5,
        side=measure_here,
        measure=measure,
        works=list(ROWS),
        packages=("torch", "transformers"),
    )
