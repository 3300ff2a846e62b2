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

from benchmarks.measuring import (
    Figure,
    Measured,
    alternate,
    apart,
    measure_speed,
    paired_ratio,
    sized,
)

Call = partial[Any] | Callable[[], object]
NAME = "inspection"
SHORT, LONG, LONGEST = sized((512, 8192, 16384), (16, 128, 256))
LAYERS, HEADS, HEAD_DIM = sized((4, 8, 64), (2, 2, 8))
PATCHED, PAIR = sized((12, 32), (2, 8))  # layers, and heads of each; tokens
WORDS = 1000  # different tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line of the record."""

    what: str
    beside: str
    bar: str
    ours: Callable[[], Call]
    theirs: Callable[[], Call]
    repeats: int = 3  # calls that are timed, after one that is not; 0 times the first
    memory: str = "that the process holds"  # what its bytes are
    page: Callable[[], float] | None = None  # bytes that it adds to a page


def peak_bytes() -> float:
    """The most memory that this process has held, which Linux has in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def _inputs(N: int, *, is_causal: bool) -> tuple[list[Any], dict[str, Any]]:
    import torch

    from regard.attention import causal

    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    mask = {"mask": causal()} if is_causal else {}
    return [torch.randn(1, 8, N, 64) for _ in range(3)], mask


def fused(*, is_causal: bool = False) -> Call:
    from torch.nn.functional import scaled_dot_product_attention

    tensors, _ = _inputs(LONG, is_causal=is_causal)
    return partial(scaled_dot_product_attention, *tensors, is_causal=is_causal)


def summary(*, is_causal: bool = False) -> Call:
    from regard.attention import summarize

    (query, key, _), mask = _inputs(LONG, is_causal=is_causal)
    summarize(query[:, :, :64], key[:, :, :64], **mask)
    return partial(summarize, query, key, **mask, top=8, map=64)


def scores() -> Call:
    import torch

    from regard.attention import head_scores

    (query, key, _), mask = _inputs(LONG, is_causal=True)
    return partial(head_scores, query, key, torch.randint(0, WORDS, (LONG,)).tolist(), **mask)


def _model_and_ids(layers: int, heads: int, head_dim: int, length: int) -> tuple[Any, Any]:
    import torch
    import transformers

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
    import torch

    model, ids = _model_and_ids(LAYERS, HEADS, HEAD_DIM, length)
    torch.set_grad_enabled(False)
    return partial(model.model, input_ids=ids, use_cache=False)


def watched(length: int) -> Call:
    import regard as rg

    call = plain(length)

    def look() -> None:
        with rg.watch(call.func) as seen:
            call()
        assert len(seen) == LAYERS

    return look


def gradients() -> Call:
    model, ids = _model_and_ids(LAYERS, HEADS, HEAD_DIM, SHORT)

    def train() -> None:
        model.zero_grad()
        model(ids, labels=ids).loss.backward()

    return train


def contributions() -> Call:
    import regard as rg

    model, ids = _model_and_ids(LAYERS, HEADS, HEAD_DIM, SHORT)
    return partial(rg.attribute, model, ids, method="gradient_times_input")


def explained_bytes() -> float:
    """Size of a page with contributions, predictions by layer and losses, less one without."""
    import tokenizers
    import transformers

    import regard as rg

    model, ids = _model_and_ids(LAYERS, HEADS, HEAD_DIM, SHORT)
    words = tokenizers.models.WordLevel({f"w{n}": n for n in range(WORDS)}, unk_token="w0")
    made = tokenizers.Tokenizer(words)
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="w0")
    text = " ".join(f"w{token}" for token in ids[0].tolist())
    pages = [rg.look(each, tokenizer, text, neurons=[]).page() for each in (model, model.model)]
    return float(len(pages[0]) - len(pages[1]))


def patched() -> Call:
    import regard as rg

    model, ids = _model_and_ids(PATCHED, PATCHED, 32, PAIR)
    return partial(rg.patch, model, ids, ids.roll(1))


def forwards() -> Call:
    """As many forward passes as there are heads, in batches of 64."""
    import torch

    model, ids = _model_and_ids(PATCHED, PATCHED, 32, PAIR)
    torch.set_grad_enabled(False)
    sizes = [min(64, PATCHED**2 - first) for first in range(0, PATCHED**2, 64)]
    return lambda: [model(ids.expand(size, -1)) for size in sizes]


_SUMMARY = (
    "Summary (entropy, received mass, top 8, map of 64 × 64), N = 8,192{}, H 8, D 64, float32"
)
_WATCH = "`watch` on a Llama-shaped model (4 layers, 8 heads of 64, random), N = {:,}"
_FUSED = {"beside": "torch's fused kernel alone", "memory": "more", "bar": "1.3 × and 0.25 GB"}
_PLAIN = "its plain forward, with torch's fused kernel"
ROWS = {
    "summary": Row(what=_SUMMARY.format(""), ours=summary, theirs=fused, **_FUSED),
    "summary_causal": Row(
        what=_SUMMARY.format(", causal"),
        ours=partial(summary, is_causal=True),
        theirs=partial(fused, is_causal=True),
        **_FUSED,
    ),
    "watch_512": Row(
        what=_WATCH.format(SHORT),
        beside=_PLAIN,
        bar="1.3 ×",
        ours=partial(watched, SHORT),
        theirs=partial(plain, SHORT),
        repeats=sized(9, 1),
    ),
    "watch_16384": Row(
        what=_WATCH.format(LONGEST),
        beside=_PLAIN,
        bar="1.7 × and 1.5 GB",
        ours=partial(watched, LONGEST),
        theirs=partial(plain, LONGEST),
        repeats=0,
    ),
    "head_scores": Row(
        what="`head_scores` of 8,192 tokens, causal, H 8, D 64, float32",
        beside="`summarize`",
        bar="1.5 ×",
        ours=scores,
        theirs=partial(summary, is_causal=True),
    ),
    "attribution": Row(
        what="Gradient × input of a Llama-shaped model (4 layers, 8 heads of 64), 512 tokens",
        beside="a forward and a backward pass",
        bar="2 ×, 1.5 MB more in a page",
        ours=contributions,
        theirs=gradients,
        page=explained_bytes,
    ),
    "patching": Row(
        what="`patch` of all heads of a Llama-shaped model (12 × 12 heads of 32), 32 tokens",
        beside="144 forward passes in batches of 64",
        bar="1.2 ×",
        ours=patched,
        theirs=forwards,
    ),
}


def measure_here(name: str, side: str) -> dict[str, float]:
    """One sample, in this process."""
    row = ROWS[name]
    call = (row.ours if side == "ours" else row.theirs)()
    before = peak_bytes() if row.memory == "more" else 0.0
    seconds = []
    for _ in range(1 + row.repeats):
        start = time.perf_counter()
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
    size = f"{peak / 1e9:.2f} GB {row.memory}"
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
