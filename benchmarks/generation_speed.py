"""Tokens a second of a language model at GPT-2 small's shape, beside its peers.

    python -m benchmarks.generation_speed [--rounds 5] [--threads 1 2] [--dry]

The peers are transformers' ``generate`` and CTranslate2's generator, in float32 and in int8, at the
fastest of its settings of threads for each number of prompts: several workers share them out, or
one has several threads. Random weights, the same on all sides, as ``regard export`` writes them.
All prompts are read at once, and all texts are of the same length. Each side is measured in a
process of its own, with the threads of its own setting, in turn; starting it is not measured.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
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
Sample = tuple[float, list[list[int]]]  # tokens a second, and the texts


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


def ours(precision: str, threads: int) -> Write:
    import torch

    from regard.decoding import greedy
    from regard.runtime import in_precision, prepared

    torch.set_num_threads(threads)
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


def generator(folder: Path, precision: str, setting: str) -> Write:
    """CTranslate2's generator with so many workers x threads."""
    import ctranslate2

    workers, each = map(int, setting.split("x"))
    generator = ctranslate2.Generator(
        str(folder), compute_type=precision, inter_threads=workers, intra_threads=each
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


def theirs(folder: Path, threads: int) -> Write:
    import torch
    from transformers import AutoModelForCausalLM, logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(threads)
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


def _write_for_peers(folder: Path) -> None:
    """Write the weights as each of them reads them."""
    from regard.export.ctranslate2 import language_model_spec
    from regard.interop.checkpoints.models import save_checkpoint

    model = _built()
    save_checkpoint(model, folder / PEER, layout="gpt2", settings={"eos_token_id": 0})
    if find_spec("ctranslate2") is not None:
        spec = language_model_spec(model, names_of(VOCABULARY))
        spec.validate()
        spec.optimize()
        (folder / GENERATOR).mkdir()
        spec.save(str(folder / GENERATOR))


def measure_here(side: str, precision: str, setting: str, prompts: str, folder: str) -> Sample:
    """One side in this process: its tokens a second, and what it wrote."""
    if side == OURS:
        write = ours(precision, int(setting))
    elif side == PEER:
        write = theirs(Path(folder) / PEER, int(setting))
    else:
        write = generator(Path(folder) / GENERATOR, precision, setting)
    write(int(prompts))
    start = time.perf_counter()
    texts = write(int(prompts))
    seconds = time.perf_counter() - start
    assert [len(each) for each in texts] == [WRITTEN] * int(prompts)
    return int(prompts) * WRITTEN / seconds, texts


def _apart(side: str, precision: str, prompts: int, folder: str, setting: str) -> Sample:
    # A generator's worker of one thread is three times as slow where the process may have two.
    threads = int(setting.split("x")[-1])
    said = ("--side", side, precision, setting, prompts, folder)
    speed, texts = apart(f"benchmarks.{NAME}", *said, threads=threads)
    return speed, texts


def _fastest(precision: str, prompts: int, threads: int, folder: str) -> str:
    """The generator's fastest setting."""
    settings = settings_of(threads)
    if len(settings) == 1:
        return settings[0]
    speed = partial(_apart, GENERATOR, precision, prompts, folder)
    return max(settings, key=lambda setting: speed(setting)[0])


def _work(prompts: int, threads: int, rounds: int, folder: str) -> dict[str, Any]:
    """All sides in turn."""
    settings: dict[str, str] = {}
    if find_spec("ctranslate2") is not None:
        settings = {one: _fastest(one, prompts, threads, folder) for one in PRECISIONS}
    sides = {f"{OURS} {one}": (OURS, one, str(threads)) for one in PRECISIONS}
    if find_spec("transformers") is not None:
        sides[PEER] = (PEER, "float32", str(threads))
    sides |= {f"{GENERATOR} {one}": (GENERATOR, one, each) for one, each in settings.items()}
    measures = {
        name: partial(_apart, side, precision, prompts, folder, setting)
        for name, (side, precision, setting) in sides.items()
    }
    samples = alternate(measures, rounds, report=lambda line: None)
    texts = {name: taken[0][1] for name, taken in samples.items()}
    if PEER in texts:
        assert texts[f"{OURS} float32"] == texts[PEER], "both have the same weights"
    return {
        "speeds": {name: [speed for speed, _ in taken] for name, taken in samples.items()},
        "settings": settings,
    }


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
    with tempfile.TemporaryDirectory() as folder:
        _write_for_peers(Path(folder))
        found = [measured(work, _work(work, threads, rounds, folder)) for work in WORKS]
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
