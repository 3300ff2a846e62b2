"""Tokens a second of a language model beside transformers' ``generate``, at GPT-2 small's shape.

    python -m benchmarks.generation_speed [--rounds 5] [--threads 1 2] [--dry]

Random weights, the same on both sides, as ``regard export --to huggingface`` writes them. All
prompts are read at once, and all texts are of the same length. Both sides are measured in turn in
one process, a process for each number of threads.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from benchmarks.measuring import (
    Figure,
    Measured,
    Spread,
    alternate,
    apart,
    measure_speed,
    paired_ratio,
    sized,
)

NAME = "generation_speed"
# Tokens of every prompt, and written after it.
PROMPT, WRITTEN = sized((32, 64), (3, 3))
VOCABULARY = sized(50_257, 40)
SHAPE = sized(
    {"model_dim": 768, "num_heads": 12, "num_layers": 12, "ffn_dim": 3072, "max_length": 1024},
    {"model_dim": 8, "num_heads": 2, "num_layers": 1, "ffn_dim": 8, "max_length": 16},
)
SAMPLING = {"temperature": 0.9, "top_k": sized(50, 5), "top_p": 0.9}
OURS, PEER = "regard", "transformers"
PRECISIONS = ("float32", "int8")


@dataclass(frozen=True, slots=True)
class Work:
    """How a model is used."""

    prompts: int  # how many at once
    is_sampled: bool  # whether tokens are drawn, of the likeliest; else the likeliest is taken

    @property
    def title(self) -> str:
        search = "samples of top-k and top-p" if self.is_sampled else "greedy"
        return f"{'one prompt' if self.prompts == 1 else f'{self.prompts} prompts'}, {search}"


WORKS = [
    Work(prompts, is_sampled) for prompts in sized((1, 16), (1, 2)) for is_sampled in (False, True)
]


def _built() -> Any:
    """Our model, with the same random weights in every process."""
    import torch

    from regard.models import Decoder, DecoderConfig

    torch.manual_seed(0)
    config = DecoderConfig(**SHAPE, activation="gelu_tanh", positions="learned")
    return Decoder(config, vocab_size=VOCABULARY, pad_id=None).eval()


def _prompts(count: int) -> Any:
    import torch

    drawn = torch.Generator().manual_seed(1)
    return torch.randint(4, VOCABULARY, (count, PROMPT), generator=drawn)


def ours(precision: str) -> Callable[[Work], list[list[int]]]:
    """Goes on with prompts; the tokens of each."""
    import torch

    from regard.decoding import greedy, sample
    from regard.runtime import in_precision, prepared

    model = prepared(in_precision(_built(), precision))

    def write(work: Work) -> list[list[int]]:
        count, prompt = work.prompts, _prompts(work.prompts)
        forced: dict[str, Any] = {
            "batch_size": count,
            "bos_id": 1,
            "eos_id": 0,
            "max_lengths": WRITTEN,
            "min_length": WRITTEN,
        }
        with torch.inference_mode():
            state = model.start(prompt, torch.full((count,), PROMPT))
            if work.is_sampled:
                drawn = sample(model.steps, state, seeds=torch.arange(count), **SAMPLING, **forced)
                return [list(one.tokens) for (one,) in drawn]
            return [list(one.tokens) for one in greedy(model.steps, state, **forced)]

    return write


def theirs() -> Callable[[Work], list[list[int]]]:
    import torch
    from transformers import AutoModelForCausalLM, logging

    from regard.interop.checkpoints.models import save_checkpoint

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        save_checkpoint(_built(), folder, layout="gpt2", settings={"eos_token_id": 0})
        model = AutoModelForCausalLM.from_pretrained(folder).eval()

    def write(work: Work) -> list[list[int]]:
        prompt = _prompts(work.prompts)
        with torch.inference_mode():
            found = model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=WRITTEN,
                min_new_tokens=WRITTEN,
                do_sample=work.is_sampled,
                pad_token_id=0,
                **(SAMPLING if work.is_sampled else {}),
            )
        rows: list[list[int]] = found[:, PROMPT:].tolist()
        return rows

    return write


def measure_here(rounds: str, threads: str) -> list[dict[str, list[float]]]:
    """Tokens a second of each side, for each work, the sides in turn in this process."""
    import torch

    torch.set_num_threads(int(threads))
    sides = {f"{OURS} {precision}": ours(precision) for precision in PRECISIONS}
    if find_spec("transformers") is not None:
        sides[PEER] = theirs()
    taken = []
    for work in WORKS:
        texts = {side: write(work) for side, write in sides.items()}
        if not work.is_sampled and PEER in sides:
            assert texts[f"{OURS} float32"] == texts[PEER], "both have the same weights"
        measures = {side: partial(_speed, write, work) for side, write in sides.items()}
        taken.append(alternate(measures, int(rounds), report=lambda line: None))
    return taken


def _speed(write: Callable[[Work], list[list[int]]], work: Work) -> float:
    start = time.perf_counter()
    tokens = sum(map(len, write(work)))
    assert tokens == work.prompts * WRITTEN
    return tokens / (time.perf_counter() - start)


def measured(work: Work, speeds: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    return {
        **asdict(work),
        "tokens_a_second": {side: Spread.of(each).table() for side, each in speeds.items()},
        "times_as_fast": {
            side: paired_ratio(each, speeds[PEER]).table()
            for side, each in speeds.items()
            if PEER in speeds and side != PEER
        },
    }


def figure(work: Work, found: Mapping[str, Any], threads: int) -> Figure:
    """One line of docs/measured.md."""
    speeds = {side: each["median"] for side, each in found["tokens_a_second"].items()}
    ratios = [
        f"{side.removeprefix(OURS).strip()}: {each['median']:.2f} × ± {each['relative']:.0%}"
        for side, each in found["times_as_fast"].items()
    ]
    ours_said = ", ".join(
        f"{speed:,.0f} in {side.removeprefix(OURS).strip()}"
        for side, speed in speeds.items()
        if side.startswith(OURS)
    )
    return Figure(
        what=f"language model of GPT-2 small's shape: {work.title}, threads: {threads}",
        ours=f"{ours_said} (tokens/s)",
        beside=f"{PEER}: {speeds[PEER]:,.0f} in float32" if PEER in speeds else "",
        note="; ".join(ratios),
    )


def measure(_: str, threads: int, rounds: int) -> Iterator[Measured]:
    """All works with so many threads."""
    samples = apart(f"benchmarks.{NAME}", "--side", rounds, threads, threads=threads)
    found = [measured(*each) for each in zip(WORKS, samples, strict=True)]
    yield (
        f"threads: {threads}",
        found,
        [figure(*each, threads) for each in zip(WORKS, found, strict=True)],
    )


def main() -> None:
    """Measure all works, and write the record."""
    measure_speed(
        NAME,
        title="Writing on beside transformers' generate, at GPT-2 small's shape",
        about=__doc__,
        rounds=5,
        side=measure_here,
        measure=measure,
        peer=PEER,
        packages=("torch", PEER),
        details={"prompt": PROMPT, "written": WRITTEN},
    )


if __name__ == "__main__":
    main()
