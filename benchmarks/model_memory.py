"""Memory of a translator that is loaded, beside CTranslate2 with the same weights.

    python -m benchmarks.model_memory [--rounds 3] [--dry]

The base Transformer of the paper with random weights and 32,000 pieces, as ``regard export`` writes
it for CTranslate2. Each side is a process of its own that loads the model and translates a
sentence: how much memory it holds then, how much of that it held before there was a model, and how
much at most. Before, a tiny model of the same kind has answered: what is there is Python, packages
and code that any model needs.
"""

import argparse
import gc
import json
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.measuring import (
    Figure,
    Spread,
    alternate,
    apart,
    machine,
    paired_ratio,
    sized,
    write_record,
)

NAME = "model_memory"
WORDS = sized(31_996, 20)
TINY: dict[str, Any] = {
    "type": "transformer",
    "model_dim": 8,
    "num_heads": 2,
    "ffn_dim": 8,
} | dict.fromkeys(("num_encoder_layers", "num_decoder_layers"), 1)
MODEL: dict[str, Any] = sized({"type": "transformer"}, TINY)
SENTENCE = " ".join(f"w{place}" for place in range(min(WORDS, 25)))
TOKENS = "tokens.json"  # the sentence as the peer reads it
OURS, PEER = "regard", "CTranslate2"
PRECISIONS = ("float32", "int8")


def write_runs(folder: Path) -> None:
    """The model, and the tiny one that answers before it is there."""
    for name, table, count in (("model", MODEL, WORDS), ("tiny", TINY, 20)):
        (folder / name).mkdir()
        write_run(folder / name, table, count)


def write_run(folder: Path, model_table: dict[str, Any], count: int) -> None:
    """A finished run of random weights, and beside it the same for the peer, if it is there."""
    import torch

    from regard.export.ctranslate2_spec import translator_spec
    from regard.runs import Run
    from regard.tasks import recipe_from_table
    from regard.tasks.registry import TASKS
    from regard.text import Pair

    words = [f"w{place}" for place in range(count)]
    lines = [" ".join(words[first : first + 50]) for first in range(0, count, 50)]
    table = {
        "task": "translation",
        "data": {"train": "pairs.tsv", "source_language": "de", "target_language": "en"},
        "tokenizer": {"type": "words"},
        "model": model_table,
    }
    recipe = recipe_from_table(table)
    pairs = [Pair(line, line, (line,), f"pairs.tsv:{place}") for place, line in enumerate(lines)]
    task = TASKS[recipe.task].task.learn(recipe, pairs)
    torch.manual_seed(0)
    model = task.build_model().eval()
    with Run.create(folder / "run", recipe.table(), recipe.task) as run:
        with run.new_tokenizer_folder() as kept:
            task.save(kept)
        run.finish(model.state_dict(), {})
    if find_spec("ctranslate2") is not None:
        source, target = task.tokenizer.source, task.tokenizer.target
        ids = source.encode(SENTENCE)
        (folder / TOKENS).write_text(json.dumps([source.names[each] for each in ids]))
        for precision in PRECISIONS:
            spec = translator_spec(model, source.names, target.names, source_end=True)
            spec.validate()
            spec.optimize(quantization=None if precision == "float32" else precision)
            (folder / precision).mkdir()
            spec.save(str(folder / precision))


def _memory(name: str) -> float:
    """Of this process, in MiB: ``VmRSS`` is what it holds, ``VmHWM`` what it held at most."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(name)


def measure_here(side: str, precision: str, folder: Path) -> dict[str, float]:
    """MiB that this process holds before there is a model and after an answer, and at most."""
    answer = _ours if side == OURS else _theirs
    answer(folder / "tiny", precision)
    gc.collect()
    before = _memory("VmRSS")
    kept = answer(folder / "model", precision)
    assert kept is not None
    return {"before": before, "loaded": _memory("VmRSS"), "most": _memory("VmHWM")}


def _ours(folder: Path, precision: str) -> object:
    """Our translator, which has answered."""
    from regard.inference import Predictor

    predictor = Predictor.load(folder / "run", precision=precision)  # type: ignore[arg-type]
    predictor.warm_up()
    predictor.translate([SENTENCE])
    return predictor


def _theirs(folder: Path, precision: str) -> object:
    """The peer's, which has answered."""
    import ctranslate2

    model = ctranslate2.Translator(str(folder / precision), inter_threads=1, intra_threads=1)
    tokens = json.loads((folder / TOKENS).read_text())
    model.translate_batch([tokens], beam_size=5, max_decoding_length=30)
    return model


def measure_apart(side: str, precision: str, folder: Path) -> dict[str, float]:
    """The same in a process of its own."""
    found: dict[str, float] = apart(
        f"benchmarks.{NAME}", "--side", side, precision, folder, threads=1
    )
    return found


def figure(precision: str, samples: dict[str, list[dict[str, float]]]) -> Figure:
    """One line of docs/measured.md."""

    def said(side: str) -> str:
        loaded, of_model, most = (
            Spread.of([take(each) for each in samples[f"{side} {precision}"]]).median
            for take in (_loaded, _of_model, lambda each: each["most"])
        )
        return f"{of_model:,.0f} MiB for the model, {loaded:,.0f} in all, {most:,.0f} at most"

    ratios = [
        paired_ratio(
            *([take(each) for each in samples[f"{side} {precision}"]] for side in (OURS, PEER))
        ).median
        for take in (_of_model, _loaded)
    ]
    return Figure(
        what=f"Memory of a loaded base Transformer, {precision}",
        ours=said(OURS),
        beside=f"{PEER}: {said(PEER)}",
        note=f"{ratios[0]:.2f} × for the model, {ratios[1]:.2f} × in all",
    )


def _loaded(sample: dict[str, float]) -> float:
    return sample["loaded"]


def _of_model(sample: dict[str, float]) -> float:
    """Never nothing: a tiny model needs less than pages show."""
    return max(1.0, sample["loaded"] - sample["before"])


def main() -> None:
    """Measure both sides, and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dry", action="store_true", help="write no record")
    parser.add_argument("--side", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        side, precision, folder = options.side
        print(json.dumps(measure_here(side, precision, Path(folder))))
        return
    if find_spec("ctranslate2") is None:
        print(f"{PEER} is not installed: nothing is measured.")
        return
    before = machine()
    with tempfile.TemporaryDirectory() as kept:
        write_runs(Path(kept))
        sides: dict[str, Callable[[], dict[str, float]]] = {
            f"{side} {precision}": partial(measure_apart, side, precision, Path(kept))
            for precision in PRECISIONS
            for side in (OURS, PEER)
        }
        samples = alternate(sides, options.rounds)
    figures = [figure(precision, samples) for precision in PRECISIONS]
    print(*figures, sep="\n")
    if options.dry:
        return
    write_record(
        NAME,
        title="Memory of a loaded translator beside CTranslate2",
        figures=figures,
        details={"rounds": options.rounds, "samples": samples},
        packages=("torch", "ctranslate2"),
        started_on=before,
    )


if __name__ == "__main__":
    main()
