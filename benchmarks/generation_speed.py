"""Tokens a second of a language model at GPT-2 small's shape, beside its peers.

    python -m benchmarks.generation_speed [--rounds 5] [--threads 1 2] [--dry]

The peers are transformers' ``generate`` and CTranslate2's generator, in float32 and in int8, at the
fastest of its settings of threads for each number of prompts: several workers share them out, or
one has several threads. Random weights, the same on all sides, as ``regard export`` writes them.
All prompts are read at once, and all texts are of the same length. All sides are measured in turn
in one process, a process for each number of threads; the generator is made anew for each measuring,
which its start is not part of.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
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
from benchmarks.peers.ctranslate2 import names_of, settings_of

NAME = "generation_speed"
# Tokens of every prompt, and written after it.
PROMPT, WRITTEN = sized((32, 32), (3, 3))
VOCABULARY = sized(50_257, 40)
SHAPE = sized(
    {"model_dim": 768, "num_heads": 12, "num_layers": 12, "ffn_dim": 3072, "max_length": 1024},
    {"model_dim": 8, "num_heads": 2, "num_layers": 1, "ffn_dim": 8, "max_length": 16},
)
WORKS = sized((1, 16), (1, 2))  # prompts at once
OURS, PEER, GENERATOR = "regard", "transformers", "CTranslate2"
PRECISIONS = ("float32", "int8")


Write = Callable[[int], list[list[int]]]  # goes on with so many prompts; the tokens of each


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


def ours(precision: str) -> Write:
    import torch

    from regard.decoding import greedy
    from regard.runtime import in_precision, prepared

    model = prepared(in_precision(_built(), precision))

    def write(count: int) -> list[list[int]]:
        forced: dict[str, Any] = {
            "batch_size": count,
            "bos_id": 1,
            "eos_id": 0,
            "max_lengths": WRITTEN,
            "min_length": WRITTEN,
        }
        with torch.inference_mode():
            state = model.start(_prompts(count), torch.full((count,), PROMPT))
            return [list(one.tokens) for one in greedy(model.steps, state, **forced)]

    return write


def generator_of(folder: str, precision: str, setting: str) -> Write:
    """CTranslate2's generator with so many workers x threads."""
    import ctranslate2

    workers, each = map(int, setting.split("x"))
    generator = ctranslate2.Generator(
        folder, compute_type=precision, inter_threads=workers, intra_threads=each
    )
    names = names_of(VOCABULARY)

    def write(count: int) -> list[list[int]]:
        found = generator.generate_batch(
            [[names[each] for each in row] for row in _prompts(count).tolist()],
            max_batch_size=-(-count // workers),
            min_length=WRITTEN,
            max_length=WRITTEN,
            include_prompt_in_result=False,
        )
        return [each.sequences_ids[0] for each in found]

    return write


def _write_for_generator(folder: str) -> None:
    from regard.export.ctranslate2 import language_model_spec

    spec = language_model_spec(_built(), names_of(VOCABULARY))
    spec.validate()
    spec.optimize()
    spec.save(folder)


def theirs() -> Write:
    import torch
    from transformers import AutoModelForCausalLM, logging

    from regard.interop.checkpoints.models import save_checkpoint

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        save_checkpoint(_built(), folder, layout="gpt2", settings={"eos_token_id": 0})
        model = AutoModelForCausalLM.from_pretrained(folder).eval()

    def write(count: int) -> list[list[int]]:
        prompt = _prompts(count)
        with torch.inference_mode():
            found = model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=WRITTEN,
                min_new_tokens=WRITTEN,
                do_sample=False,
                pad_token_id=0,
            )
        rows: list[list[int]] = found[:, PROMPT:].tolist()
        return rows

    return write


def measure_here(rounds: str, threads: str) -> list[dict[str, Any]]:
    """Tokens a second of each side, for each work, the sides in turn in this process."""
    import torch

    torch.set_num_threads(int(threads))
    sides = {f"{OURS} {precision}": ours(precision) for precision in PRECISIONS}
    if find_spec("transformers") is not None:
        sides[PEER] = theirs()
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        if find_spec("ctranslate2") is not None:
            _write_for_generator(folder)
        generator = partial(generator_of, folder)
        for work in WORKS:
            settings = _fastest(generator, work, int(threads))
            texts = {side: write(work) for side, write in sides.items()}
            if PEER in sides:
                assert texts[f"{OURS} float32"] == texts[PEER], "both have the same weights"
            measures = {side: partial(_speed, write, work) for side, write in sides.items()}
            for one, each in settings.items():
                measures[f"{GENERATOR} {one}"] = partial(_speed_of, generator, one, each, work)
            speeds = alternate(measures, int(rounds), report=lambda line: None)
            taken.append({"speeds": speeds, "settings": settings})
    return taken


def _fastest(generator: Any, work: int, threads: int) -> dict[str, str]:
    """The generator's setting for each precision; none where it is not installed."""
    if find_spec("ctranslate2") is None:
        return {}

    def speed(precision: str, setting: str) -> float:
        return _speed_of(generator, precision, setting, work)

    return {one: max(settings_of(threads), key=partial(speed, one)) for one in PRECISIONS}


def _speed_of(
    generator: Callable[[str, str], Write], precision: str, setting: str, work: int
) -> float:
    """Speed of a generator made for it: the idle workers of one that stays slow the other sides."""
    write = generator(precision, setting)
    write(work)
    return _speed(write, work)


def _speed(write: Write, prompts: int) -> float:
    start = time.perf_counter()
    tokens = sum(map(len, write(prompts)))
    assert tokens == prompts * WRITTEN
    return tokens / (time.perf_counter() - start)


def measured(prompts: int, sample: Mapping[str, Any]) -> dict[str, Any]:
    """Speeds and ratios of a work: transformers has float32 alone, the generator ours each."""
    speeds = sample["speeds"]
    pairs = {PEER: "float32"} | {f"{GENERATOR} {one}": one for one in PRECISIONS}
    return {
        "prompts": prompts,
        "workers and threads": sample["settings"],
        "tokens_a_second": {side: Spread.of(each).table() for side, each in speeds.items()},
        "times_as_fast": {
            side: paired_ratio(speeds[f"{OURS} {one}"], speeds[side]).table()
            for side, one in pairs.items()
            if side in speeds
        },
    }


def figure(prompts: int, found: Mapping[str, Any], threads: int) -> Figure:
    """One line of docs/measured.md."""
    speeds = {side: each["median"] for side, each in found["tokens_a_second"].items()}
    at_once = "one prompt" if prompts == 1 else f"{prompts} prompts"

    def spoken(side: str) -> str:
        return ", ".join(f"{speeds[f'{side} {one}']:,.0f} in {one}" for one in PRECISIONS)

    ratios = [
        f"beside {side.replace(GENERATOR, 'its')}: {each['median']:.2f} × ± {each['relative']:.0%}"
        for side, each in found["times_as_fast"].items()
    ]
    settings = " and ".join(found["workers and threads"].values()).replace("x", " × ")
    peers = [f"{PEER}: {speeds[PEER]:,.0f} in float32"] if PEER in speeds else []
    peers += [f"{GENERATOR}: {spoken(GENERATOR)}"] if settings else []
    ratios += [f"its workers × threads are {settings}"] if settings else []
    return Figure(
        what=f"language model of GPT-2 small's shape: {at_once}, greedy, threads: {threads}",
        ours=f"{spoken(OURS)} (tokens/s)",
        beside="; ".join(peers),
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
        title="Writing on beside transformers and CTranslate2, at GPT-2 small's shape",
        about=__doc__,
        rounds=5,
        side=measure_here,
        measure=measure,
        peer=PEER,
        packages=("torch", PEER, "ctranslate2"),
        details={"prompt": PROMPT, "written": WRITTEN},
    )


if __name__ == "__main__":
    main()
