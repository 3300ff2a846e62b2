"""Tokens a second of translating beside CTranslate2, with the same weights.

    python -m benchmarks.decoding_speed --work W [--rounds 5] [--threads 1 2] [--dry]

CTranslate2 reads each model as ``regard export`` writes it, and runs at the fastest of its settings
of threads, which a round before the others finds for each search: several workers share out a
batch, or a worker has several threads. The paper's base model has random weights, and outputs of
one length, so that every side takes as many steps. The small one is trained on Multi30k, and its
outputs end where it ends them: sentences of the test part, sorted by length. ``--work`` has it in
``run``, where it is trained if there is none. Each side is measured in a process of its own, in
turn.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.measuring import (
    Figure,
    Measured,
    Spread,
    alternate,
    apart,
    corpora,
    measure_speed,
    paired_ratio,
    sized,
)
from benchmarks.peers.ctranslate2 import names_of, settings_of

NAME = "decoding_speed"
# Tokens of every source and of every output, where both are forced.
SOURCE, OUTPUT = sized((25, 25), (3, 3))
# Sentences of random ids that are translated one after the other, and those of the test part.
SINGLE, LINES = sized((4, 200), (1, 4))
UPDATES = 400  # of the trained model, where it is not there

Outputs = Sequence[Sequence[object]]
Translate = Callable[[list[list[int]], int], Outputs]


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """A model, and how it is searched."""

    title: str  # what it is, in words
    vocabulary: int = 0  # ids, of both sides; none where the model is trained
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
        searches=((32, 4), (1, 1)),
    ),
    "trained": Work(
        title="Transformer, 4 + 4 layers of 128, trained on Multi30k",
        searches=((32, 1), (32, 4), (1, 1)),
    ),
}
OURS, PEER = "regard", "CTranslate2"
PRECISIONS = ("float32", "int8")


@cache
def _trained(run: str) -> Any:
    from regard.inference import Predictor

    return Predictor.load(run)


def prepare(model: Any, precision: str) -> Any:
    """Our model as answers are made with it, its weights in a precision of ``PRECISIONS``."""
    from regard.runtime import in_precision, prepared

    return prepared(in_precision(model, precision))


def built(work: Work, run: str) -> Any:
    """The model: trained, or with the same random weights in every process."""
    import torch

    from regard.models import Transformer, TransformerConfig

    if not work.vocabulary:
        return _trained(run).model
    torch.manual_seed(0)
    size = work.vocabulary
    config = TransformerConfig(**work.model)
    return Transformer(config, source_vocab=size, target_vocab=size, shared_vocab=True).eval()


def sources(work: Work, count: int, run: str) -> list[list[int]]:
    """Ids of sentences, none of them reserved: of the test part, or random ones of one length."""
    import torch

    if not work.vocabulary:
        text = (corpora() / "multi30k" / "test_2016_flickr.en").read_text("utf-8")
        encode = _trained(run).task.tokenizer.source.encode
        return sorted((list(encode(line)) for line in text.splitlines()[:LINES]), key=len)
    drawn = torch.Generator().manual_seed(1)
    count = SINGLE if count == 1 else count
    rows: list[list[int]] = torch.randint(
        4, work.vocabulary, (count, SOURCE), generator=drawn
    ).tolist()
    return rows


def write_for_peer(work: Work, folder: Path, run: str) -> None:
    """The model as CTranslate2 reads it."""
    from regard.export.ctranslate2 import translator_spec

    model = built(work, run)
    names = names_of(len(model.source_embedding.weight))
    spec = translator_spec(model, names, names, source_end=False)
    spec.validate()
    spec.optimize()
    folder.mkdir(parents=True)
    spec.save(str(folder))


def translating(work: Work, model: Any) -> Translate:
    """Translates sentences at once with a beam so wide; the tokens of each output."""
    import torch

    from regard.decoding import beam, greedy
    from regard.text import BOS_ID, EOS_ID, PAD_ID

    def translate(rows: list[list[int]], width: int) -> Outputs:
        lengths = torch.tensor([len(row) for row in rows])
        longest = max(map(len, rows))
        source = torch.tensor([row + [PAD_ID] * (longest - len(row)) for row in rows])
        options: dict[str, Any] = {"batch_size": len(rows), "bos_id": BOS_ID, "eos_id": EOS_ID}
        if work.vocabulary:
            options |= {"max_lengths": OUTPUT, "min_length": OUTPUT - 1}
        else:
            options |= {"max_lengths": 2 * longest + 10, "length_penalty": 1.0}
        with torch.inference_mode():
            state = model.start(source, lengths)
            if width == 1:
                return [each.tokens for each in greedy(model.steps, state, **options)]
            found = beam(model.steps, state, beam_size=width, **options)
        return [best.tokens for best, *_ in found]

    return translate


def _ours(work: Work, precision: str, threads: int, run: str) -> Translate:
    import torch

    torch.set_num_threads(threads)
    return translating(work, prepare(built(work, run), precision))


def _theirs(work: Work, precision: str, setting: str, folder: Path) -> Translate:
    import ctranslate2

    workers, each = map(int, setting.split("x"))
    translator = ctranslate2.Translator(
        str(folder), compute_type=precision, inter_threads=workers, intra_threads=each
    )
    names = json.loads((folder / "shared_vocabulary.json").read_text("utf-8"))

    def translate(rows: list[list[int]], width: int) -> Outputs:
        forced = {"min_decoding_length": OUTPUT, "max_decoding_length": OUTPUT}
        found = translator.translate_batch(
            [[names[each] for each in row] for row in rows],
            beam_size=width,
            max_batch_size=-(-len(rows) // workers),
            **(forced if work.vocabulary else {"max_decoding_length": 2 * len(rows[-1]) + 10}),
        )
        return [each.hypotheses[0] for each in found]

    return translate


def measure_here(
    name: str, side: str, precision: str, place: str, setting: str, work: str
) -> float:
    """Tokens a second of one search of a model, in this process."""
    search, run = WORKS[name].searches[int(place)], str(Path(work) / "run")
    if side == OURS:
        translate = _ours(WORKS[name], precision, int(setting), run)
    else:
        translate = _theirs(WORKS[name], precision, setting, Path(work) / name)
    rows, forced = sources(WORKS[name], search[0], run), OUTPUT if WORKS[name].vocabulary else 0
    return _tokens_a_second(translate, rows, *search, forced)


def _tokens_a_second(
    translate: Translate, rows: list[list[int]], count: int, width: int, forced: int
) -> float:
    """Speed of writing outputs of forced length, or (0) of their own, the end included."""
    batches = [rows[first : first + count] for first in range(0, len(rows), count)]
    translate(batches[0], width)
    start = time.perf_counter()
    outputs = [each for batch in batches for each in translate(batch, width)]
    seconds = time.perf_counter() - start
    return sum(forced or 1 + len(each) for each in outputs) / seconds


def _apart(
    name: str, side: str, precision: str, settings: Sequence[str], work: Path
) -> list[float]:
    """Speeds of all searches, each in a process of its own with the threads of its setting."""
    # A worker of one thread is three times as slow where the process may have two.
    return [
        apart(
            f"benchmarks.{NAME}",
            *("--side", name, side, precision, place, setting, work),
            threads=int(setting.split("x")[-1]),
        )
        for place, setting in enumerate(settings)
    ]


def fastest(name: str, precision: str, threads: int, work: Path) -> list[str]:
    """The setting of the peer that is fastest, for each search."""
    settings, count = settings_of(threads), len(WORKS[name].searches)
    if len(settings) == 1:
        return settings * count
    speeds = [_apart(name, PEER, precision, [setting] * count, work) for setting in settings]
    columns = zip(*speeds, strict=True)
    return [settings[column.index(max(column))] for column in columns]


def measured(
    name: str,
    samples: Mapping[str, Sequence[Sequence[float]]],
    settings: Mapping[str, Sequence[str]],
) -> list[dict[str, Any]]:
    """Speeds and ratios of each search of a model, from its samples."""
    found = []
    for place, (count, width) in enumerate(WORKS[name].searches):
        speeds = {side: [sample[place] for sample in taken] for side, taken in samples.items()}
        found.append(
            {
                "sentences": count,
                "beam": width,
                "workers and threads": {one: each[place] for one, each in settings.items()},
                "tokens_a_second": {side: Spread.of(each).table() for side, each in speeds.items()},
                "times_as_fast": {
                    one: paired_ratio(speeds[f"{OURS} {one}"], speeds[f"{PEER} {one}"]).table()
                    for one in settings
                },
            }
        )
    return found


def figure(work: Work, found: Mapping[str, Any], threads: int) -> Figure:
    """One line of docs/measured.md."""
    count = found["sentences"]
    at_once = "one sentence at a time" if count == 1 else f"{count} sentences at once"
    search = "greedy" if found["beam"] == 1 else f"a beam of {found['beam']}"

    def spoken(side: str) -> str:
        speeds = found["tokens_a_second"]
        return ", ".join(f"{speeds[f'{side} {one}']['median']:,.0f} in {one}" for one in PRECISIONS)

    ratios = [
        f"{one}: {each['median']:.2f} × ± {each['relative']:.0%}"
        for one, each in found["times_as_fast"].items()
    ]
    settings = " and ".join(found["workers and threads"].values()).replace("x", " × ")
    ratios += [f"its workers × threads are {settings}"] if settings else []
    return Figure(
        what=f"{work.title}: {at_once}, {search}, threads: {threads}",
        ours=f"{spoken(OURS)} (tokens/s)",
        beside=f"{PEER}: {spoken(PEER)}" if settings else "",
        note="; ".join(ratios),
    )


def measure(name: str, threads: int, rounds: int, work: Path) -> Iterator[Measured]:
    """All searches of a model with so many threads."""
    if not WORKS[name].vocabulary and not (work / "run").exists():
        _train(work / "run")
    if find_spec("ctranslate2") and not (work / name).exists():
        write_for_peer(WORKS[name], work / name, str(work / "run"))
    has_peer = find_spec("ctranslate2") is not None
    settings = {one: fastest(name, one, threads, work) for one in PRECISIONS if has_peer}
    ours = [str(threads)] * len(WORKS[name].searches)
    sides = {f"{OURS} {one}": partial(_apart, name, OURS, one, ours, work) for one in PRECISIONS}
    sides |= {
        f"{PEER} {one}": partial(_apart, name, PEER, one, chosen, work)
        for one, chosen in settings.items()
    }
    found = measured(name, alternate(sides, rounds), settings)
    lines = [figure(WORKS[name], each, threads) for each in found]
    yield f"{name}, threads: {threads}", found, lines


def _train(run: Path) -> None:
    """Train the recipe ``transformer-tiny`` on Multi30k for a while."""
    from benchmarks.training import train
    from regard.cli.jobs import parse_arguments
    from regard.config import parse_settings

    home = corpora() / "multi30k"
    pairs = [str(home / f"train.{language}.gz") for language in ("en", "de")]
    settings = parse_settings([f"training.updates={UPDATES}"])
    train(parse_arguments(["transformer-tiny", *pairs]).resolve(settings), run)


def main() -> None:
    """Measure all models, and write the record."""
    measure_speed(
        NAME,
        title="Translating beside CTranslate2, with the same weights",
        about=__doc__,
        rounds=5,
        side=measure_here,
        measure=measure,
        works=list(WORKS),
        peer="ctranslate2",
        packages=("torch", "ctranslate2"),
        needs_folder=True,
    )


if __name__ == "__main__":
    main()
