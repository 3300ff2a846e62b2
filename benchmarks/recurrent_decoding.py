"""Tokens a second of recurrent and convolutional models, prepared for use and as they learn.

    python -m benchmarks.recurrent_decoding [--rounds 7] [--threads 1 2] [--dry]

Recurrent and convolutional encoder-decoders with random weights, and a recurrent language model,
each driven by the same searches with :func:`regard.runtime.prepared` and without, in turn
in one process. Sources are read each time. All outputs are of one length, so that both sides take
as many steps.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.measuring import (
    Figure,
    Measured,
    Spread,
    apart,
    measure_speed,
    paired_ratio,
    sized,
)

NAME = "recurrent_decoding"
REPEATS = sized(3, 1)
# Tokens of every source and of every output.
SOURCE, OUTPUT = sized((12, 12), (3, 3))
# Sentences at once, and the width of the beam; 1 is greedy.
SEARCHES = ((1, 1), (64, 1), (1, 5), (64, 5))
PLAIN, PREPARED = "as it learns", "prepared"
# Ids of the phrasebook's sources and targets, where words are tokens.
VOCABULARIES = sized((806, 1441), (40, 41))


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """A model.

    Attributes:
        title: What it is, in words.
        model: Settings beside its defaults.
        kind: ``recurrent``, ``convolutional``, or a ``language model``, which goes on with one
            token.
    """

    title: str
    model: Mapping[str, Any]
    kind: str = "recurrent"


_SIZES = sized(
    {"embed_dim": 128, "hidden_dim": 128, "attention_dim": 64},
    {"embed_dim": 8, "hidden_dim": 8, "attention_dim": 8},
)
WORKS = {
    "rnn-attention": Work(title="GRU with additive attention, 128 wide", model=_SIZES),
    "rnn-luong": Work(
        title="Two layers of LSTM with input feeding and a bilinear score, 128 wide",
        model={
            **_SIZES,
            "cell": "lstm",
            "decoder": "luong",
            "attention": "general",
            "num_layers": 2,
        },
    ),
    "language-model": Work(
        title="LSTM language model, 512 wide",
        model=sized({"embed_dim": 192, "hidden_dim": 512}, {"embed_dim": 8, "hidden_dim": 8}),
        kind="language model",
    ),
    "conv-seq2seq": Work(
        title="Convolutional, 4 + 3 layers, 256 wide",
        model=sized({}, {"embed_dim": 8, "hidden_dim": 8, "num_decoder_layers": 1}),
        kind="convolutional",
    ),
}


def _built(work: Work) -> Any:
    import torch

    from regard import models

    torch.manual_seed(0)
    source, target = VOCABULARIES
    if work.kind == "language model":
        config = models.RecurrentLmConfig(**work.model)
        return models.RecurrentLm(config, vocab_size=target).eval()
    kind, settings = {
        "recurrent": (models.RnnSeq2Seq, models.RnnSeq2SeqConfig),
        "convolutional": (models.ConvSeq2Seq, models.ConvSeq2SeqConfig),
    }[work.kind]
    return kind(settings(**work.model), source_vocab=source, target_vocab=target).eval()


def searched(model: Any, *, is_translator: bool, count: int, width: int) -> Callable[[], int]:
    """What reads so many sources and writes an output of each; how many tokens it wrote."""
    import torch

    from regard.decoding import beam, greedy
    from regard.text import BOS_ID, EOS_ID

    drawn = torch.Generator().manual_seed(1)
    length = SOURCE if is_translator else 1
    source = torch.randint(4, VOCABULARIES[0], (count, length), generator=drawn)
    forced: dict[str, Any] = {
        "batch_size": count,
        "bos_id": BOS_ID,
        "eos_id": EOS_ID,
        "max_lengths": OUTPUT,
        "min_length": OUTPUT - 1,
    }

    @torch.inference_mode()
    def search() -> int:
        state = model.start(source, torch.full((count,), length))
        if width == 1:
            found = greedy(model.steps, state, **forced)
        else:
            found = [best for best, *_ in beam(model.steps, state, beam_size=width, **forced)]
        return sum(len(each.tokens) + each.is_finished for each in found)

    return search


def measure_here(name: str, threads: str, rounds: str) -> list[dict[str, list[float]]]:
    """Tokens a second of both sides in each round, for each of ``SEARCHES``."""
    import torch

    from regard.runtime import prepared

    torch.set_num_threads(int(threads))
    work = WORKS[name]
    model = _built(work)
    sides = {PLAIN: model, PREPARED: prepared(model)}
    found = []
    for count, width in SEARCHES:
        calls = {
            side: searched(
                made, is_translator=work.kind != "language model", count=count, width=width
            )
            for side, made in sides.items()
        }
        for call in calls.values():
            assert call() == count * OUTPUT
        samples: dict[str, list[float]] = {side: [] for side in calls}
        for _ in range(int(rounds)):
            for side, call in calls.items():
                samples[side].append(count * OUTPUT / _seconds(call))
        found.append(samples)
    return found


def _seconds(call: Callable[[], object]) -> float:
    """The shortest of a few times."""
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def figure(
    work: Work, search: tuple[int, int], threads: int, samples: Mapping[str, Sequence[float]]
) -> Figure:
    """One line of docs/measured.md."""
    count, width = search
    ratio = paired_ratio(samples[PREPARED], samples[PLAIN])
    plain, ready = (Spread.of(samples[side]).median for side in (PLAIN, PREPARED))
    at_once = "one at a time" if count == 1 else f"{count} at once"
    kind = "greedy" if width == 1 else f"a beam of {width}"
    return Figure(
        what=f"{work.title}: {at_once}, {kind}, threads: {threads}",
        ours=f"{ready:,.0f} tokens/s prepared",
        beside=f"{plain:,.0f} without",
        note=f"{ratio.median:.2f} × ± {ratio.relative:.0%}",
    )


def measure(name: str, threads: int, rounds: int) -> Iterator[Measured]:
    """All searches of a model with so many threads."""
    found = apart(f"benchmarks.{NAME}", "--side", name, threads, rounds, threads=threads)
    for search, samples in zip(SEARCHES, found, strict=True):
        line = figure(WORKS[name], search, threads, samples)
        yield line.what, {side: Spread.of(each).table() for side, each in samples.items()}, [line]


def main() -> None:
    """Measure all models, and write the record."""
    measure_speed(
        NAME,
        title="Recurrent and convolutional models prepared for use, beside themselves",
        about=__doc__,
        rounds=7,
        side=measure_here,
        measure=measure,
        works=list(WORKS),
    )


if __name__ == "__main__":
    main()
