"""Tokens a second of translating beside CTranslate2, with the same weights.

    python -m benchmarks.decoding_speed [--rounds 5] [--threads 1 2] [--dry]

Two Transformers with random weights, which CTranslate2 reads as ``regard export`` writes them: the
paper's base model, and a small one. All outputs are of the same length, so that every side takes as
many steps. Each side is measured in a process of its own, in turn: every search of its model, the
fastest of a few times.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import product
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

NAME = "decoding_speed"
REPEATS = sized(2, 1)
# Tokens of every source and of every output.
SOURCE, OUTPUT = sized((25, 25), (3, 3))
# Sentences that are translated one after the other, where one is translated at a time.
SINGLE = sized(4, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """A model, and how it is searched."""

    title: str  # what it is, in words
    vocabulary: int  # ids, of both sides
    # settings of a Transformer, beside its defaults
    model: Mapping[str, Any] = field(default_factory=dict)
    searches: Sequence[tuple[int, int]]  # sentences at once, and the width of the beam; 1 is greedy


_TINY = {"model_dim": 8, "num_heads": 2, "ffn_dim": 8} | dict.fromkeys(
    ("num_encoder_layers", "num_decoder_layers"), 1
)
WORKS = {
    "base": Work(
        title="Transformer, 6 + 6 layers of 512, 32,000 pieces",
        vocabulary=sized(32_000, 40),
        model=sized({}, _TINY),
        searches=((32, 1), (32, 4), (1, 1), (1, 5)),
    ),
    "small": Work(
        title="Transformer, 4 + 4 layers of 128, 8,000 pieces",
        vocabulary=sized(8_000, 40),
        model=sized(
            {
                "model_dim": 128,
                "num_heads": 4,
                "ffn_dim": 256,
                "num_encoder_layers": 4,
                "num_decoder_layers": 4,
                "norm": "pre",
            },
            _TINY,
        ),
        searches=((1, 1), (1, 5), (64, 1), (64, 5)),
    ),
}
OURS, PEER = "regard", "CTranslate2"
SIDES = {OURS: ("float32", "int8"), PEER: ("float32", "int8")}


def prepare(model: Any, precision: str) -> Any:
    """Our model as answers are made with it, its weights in a precision of ``SIDES``."""
    from regard.runtime import in_precision, prepared

    return prepared(in_precision(model, precision))


def built(work: Work) -> Any:
    """The model, with the same random weights in every process."""
    import torch

    from regard.models import Transformer, TransformerConfig

    torch.manual_seed(0)
    size = work.vocabulary
    config = TransformerConfig(**work.model)
    return Transformer(config, source_vocab=size, target_vocab=size, shared_vocab=True).eval()


def sources(work: Work, count: int) -> list[list[int]]:
    """Ids of as many sentences, none of them reserved."""
    import torch

    drawn = torch.Generator().manual_seed(1)
    rows: list[list[int]] = torch.randint(
        4, work.vocabulary, (count, SOURCE), generator=drawn
    ).tolist()
    return rows


def _names(work: Work) -> list[str]:
    from regard.text.tokenizers.pieces import RESERVED

    return [*RESERVED, *(f"p{each}" for each in range(len(RESERVED), work.vocabulary))]


def write_for_peer(work: Work, folder: Path) -> None:
    """The model as CTranslate2 reads it."""
    from regard.export.ctranslate2 import translator_spec

    names = _names(work)
    spec = translator_spec(built(work), names, names, source_end=False)
    spec.validate()
    spec.optimize()
    folder.mkdir()
    spec.save(str(folder))


def translating(
    work: Work, model: Any, drawn: Callable[[Work, int], list[list[int]]] = sources
) -> Callable[[int, int], int]:
    """Translates so many sentences at once with a beam so wide; how many tokens it wrote."""
    import torch

    from regard.decoding import beam, greedy
    from regard.text import BOS_ID, EOS_ID

    def translate(count: int, width: int) -> int:
        source = torch.tensor(drawn(work, count))
        forced: dict[str, Any] = {
            "batch_size": count,
            "bos_id": BOS_ID,
            "eos_id": EOS_ID,
            "max_lengths": OUTPUT,
            "min_length": OUTPUT - 1,
        }
        with torch.inference_mode():
            state = model.start(source, torch.full((count,), SOURCE))
            if width == 1:
                greedy(model.steps, state, **forced)
            else:
                beam(model.steps, state, beam_size=width, **forced)
        return count * OUTPUT

    return translate


def _ours(work: Work, precision: str, threads: int) -> Callable[[int, int], int]:
    import torch

    torch.set_num_threads(threads)
    return translating(work, prepare(built(work), precision))


def _theirs(work: Work, precision: str, threads: int, *, folder: Path) -> Callable[[int, int], int]:
    import ctranslate2

    translator = ctranslate2.Translator(
        str(folder), compute_type=precision, inter_threads=1, intra_threads=threads
    )
    names = _names(work)

    def translate(count: int, width: int) -> int:
        found = translator.translate_batch(
            [[names[each] for each in row] for row in sources(work, count)],
            beam_size=width,
            min_decoding_length=OUTPUT,
            max_decoding_length=OUTPUT,
            max_batch_size=count,
        )
        return sum(len(each.hypotheses[0]) for each in found)

    return translate


def measure_here(name: str, side: str, precision: str, threads: str, folder: str) -> list[float]:
    """Tokens a second of each search of a model, in this process."""
    work = WORKS[name]
    if side == OURS:
        translate = _ours(work, precision, int(threads))
    else:
        translate = _theirs(work, precision, int(threads), folder=Path(folder))
    return [_tokens_a_second(translate, *search) for search in work.searches]


def _tokens_a_second(translate: Callable[[int, int], int], count: int, width: int) -> float:
    assert translate(count, width) == count * OUTPUT
    speeds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        tokens = sum(translate(count, width) for _ in range(SINGLE if count == 1 else 1))
        speeds.append(tokens / (time.perf_counter() - start))
    return max(speeds)


def measure_apart(name: str, side: str, precision: str, threads: int, folder: Path) -> list[float]:
    measured: list[float] = apart(
        f"benchmarks.{NAME}",
        *("--side", name, side, precision, threads, folder),
        threads=threads,
    )
    return measured


def measured(work: Work, samples: Mapping[str, Sequence[Sequence[float]]]) -> list[dict[str, Any]]:
    found = []
    for place, (count, width) in enumerate(work.searches):
        speeds = {side: [sample[place] for sample in taken] for side, taken in samples.items()}
        ours = [side for side in speeds if side.startswith(OURS)]
        theirs = [side for side in speeds if side.startswith(PEER)]
        found.append(
            {
                "sentences": count,
                "beam": width,
                "tokens_a_second": {side: Spread.of(each).table() for side, each in speeds.items()},
                "times_as_fast": {
                    f"{one} / {other}": paired_ratio(speeds[one], speeds[other]).table()
                    for one, other in product(ours, theirs)
                },
            }
        )
    return found


def figure(work: Work, found: Mapping[str, Any], threads: int) -> Figure:
    """One line of docs/measured.md."""
    speeds = {side: each["median"] for side, each in found["tokens_a_second"].items()}
    count = found["sentences"]
    at_once = "one sentence at a time" if count == 1 else f"{count} sentences at once"
    search = "greedy" if found["beam"] == 1 else f"a beam of {found['beam']}"
    ratios = [
        f"{sides.replace(f'{OURS} ', '').replace(f' / {PEER}', ' beside its')}: "
        f"{each['median']:.2f} × ± {each['relative']:.0%}"
        for sides, each in found["times_as_fast"].items()
    ]

    def said(side: str) -> str:
        return ", ".join(
            f"{speed:,.0f} in {name.removeprefix(side).strip()}"
            for name, speed in speeds.items()
            if name.startswith(side)
        )

    return Figure(
        what=f"{work.title}: {at_once}, {search}, threads: {threads}",
        ours=f"{said(OURS)} (tokens/s)",
        beside=f"{PEER}: {said(PEER)}",
        note="; ".join(ratios),
    )


def measure(kept: Path, name: str, threads: int, rounds: int) -> Iterator[Measured]:
    """All searches of a model with so many threads; its files for the peer go into a folder."""
    folder = kept / name
    if PEER in SIDES and not folder.exists():
        write_for_peer(WORKS[name], folder)
    sides = {
        f"{side} {precision}": partial(measure_apart, name, side, precision, threads, folder)
        for side, precisions in SIDES.items()
        for precision in precisions
    }
    found = measured(WORKS[name], alternate(sides, rounds))
    lines = [figure(WORKS[name], each, threads) for each in found]
    yield f"{name}, threads: {threads}", found, lines


def main() -> None:
    """Measure both models, and write the record."""
    if find_spec("ctranslate2") is None:
        SIDES.pop(PEER, None)
    with tempfile.TemporaryDirectory() as kept:
        measure_speed(
            NAME,
            title="Translating beside CTranslate2, with the same weights",
            about=__doc__,
            rounds=5,
            side=measure_here,
            measure=partial(measure, Path(kept)),
            works=list(WORKS),
            peer="ctranslate2",
            packages=("torch", "ctranslate2"),
        )


if __name__ == "__main__":
    main()
