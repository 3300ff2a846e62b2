"""Training on a CUDA GPU: a Transformer beside plain torch modules, characters beside nanoGPT.

    python -m benchmarks.gpu_training --work W [--nanogpt FOLDER] [--only PART] [--rounds 5]

- ``transformer``: that of ``benchmarks.training_speed``, with its batches and its dropout.
- ``characters``: milliseconds of an update on tiny Shakespeare by the settings that nanoGPT has for
  a GPU (6 layers, 384 wide, context 256, 64 windows a batch). Its own script compiles its model,
  ours is not compiled. Start-up, compiling and the first updates are not timed.
- ``losses``: both train 5,000 updates side by side, validate every 250, and keep the weights of the
  lowest loss, which is then that of the *whole* validation part, in the same windows.

``--only`` does a part, of some minutes each, and the record names those that it has not. Without a
GPU it ends and says so.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import measuring
from benchmarks.measuring import Figure, Spread, apart, sized
from benchmarks.occasion import TINY, before_timing
from benchmarks.peers import nanogpt
from benchmarks.training_speed import both_sides, figure, speeds, write_batches

UPDATES, WARMUP = sized((100, 40), (2, 1))
# Of characters: updates that are timed, those before that are not, and those of a whole training.
TIMED, SETTLING, WHOLE = sized((150, 50, 5000), (4, 1, 4))
THREADS = 2  # of each process; a GPU's work takes one
RECIPE = "language-model-characters"
# nanoGPT's settings for a GPU, where the recipe has those that it has for a CPU.
SETTINGS = sized(
    (
        *("data.context=256", "model.max_length=256", "training.batch_tokens=16384"),
        *("model.model_dim=384", "model.ffn_dim=1536", "model.num_layers=6", "model.num_heads=6"),
        *("model.dropout=0.2", "model.attention_dropout=0.2", "training.precision=bfloat16"),
    ),
    ("model.model_dim=16",),
)
_CHARACTERS = "Tiny Shakespeare by nanoGPT's settings for a GPU, bfloat16, on a GPU"


def transformer(options: argparse.Namespace) -> dict[str, Any]:
    """Tokens a second of both sides."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    amount = ("--updates", UPDATES, "--warmup", WARMUP, "--device", device)
    file = write_batches(options.work, UPDATES)
    sides = both_sides("transformer", "bfloat16", file, *amount, threads=THREADS)
    rates, _, details = speeds(sides, options.rounds)
    return {**details, "rates": rates}


def characters(options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of an update of both sides."""
    home, text = nanogpt.texts(options.work, options.nanogpt)

    def ours() -> float:
        number = len(list(options.work.glob("timed-*")))
        found = _ours(text, options.work / f"timed-{number}", TIMED)
        return float(statistics.median(found["milliseconds"][SETTLING:]))

    def theirs() -> float:
        flags = nanogpt.GPU_FLAGS
        found = nanogpt.train(home, iterations=TIMED, threads=THREADS, flags=flags)
        return float(statistics.median(found["milliseconds"][SETTLING:]))

    samples = measuring.alternate({"regard": ours, "nanoGPT": theirs}, options.rounds)
    ratio = measuring.paired_ratio(samples["regard"], samples["nanoGPT"])
    return {
        "milliseconds": {name: Spread.of(each).table() for name, each in samples.items()},
        "ratio": ratio.table(),
    }


def losses(options: argparse.Namespace) -> dict[str, Any]:
    """The losses of whole trainings."""
    home, text = nanogpt.texts(options.work, options.nanogpt)
    flags = {**nanogpt.GPU_FLAGS, "eval_interval": "250", "always_save_checkpoint": "False"}
    with ThreadPoolExecutor() as both:
        theirs = both.submit(nanogpt.train, home, iterations=WHOLE, threads=THREADS, flags=flags)
        more = ("training.validate_every=250", "training.keep=1")
        mine = _ours(text, options.work / "whole", WHOLE, *more)
        theirs.result()
    their = apart("benchmarks.peers.nanogpt", home, "--threads", THREADS, threads=THREADS)
    return {"regard": mine["loss"], "nanoGPT": their["loss"]}


# Rows of the record.
PARTS = {"transformer": transformer, "characters": characters, "losses": losses}


def figures_of(part: str, found: Mapping[str, Any]) -> Iterator[Figure]:
    """The line of a part."""
    if part == "transformer":
        rates = found["rates"]
        (name,) = set(rates) - {"regard"}
        ratio = measuring.paired_ratio(rates["regard"], rates[name])
        yield figure("transformer", "bfloat16", "on a GPU", name, ratio, rates)
    elif part == "characters":
        mine, theirs = (found["milliseconds"][side]["median"] for side in ("regard", "nanoGPT"))
        ratio = found["ratio"]
        yield Figure(
            what=f"{_CHARACTERS}: time of an update",
            ours=f"{mine:.1f} ms",
            beside=f"nanoGPT, compiled: {theirs:.1f} ms",
            note=f"{ratio['median']:.2f} × its time, ±{ratio['relative']:.0%}",
        )
    else:
        yield Figure(
            what=f"{_CHARACTERS}: loss of the whole validation part",
            ours=f"{found['regard']:.3f}",
            beside=f"nanoGPT: {found['nanoGPT']:.3f}",
            note=f"{WHOLE:,} updates each, the weights of the lowest validation loss",
        )


def main() -> None:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder outside the repository")
    parser.add_argument("--nanogpt", type=Path, help="folder of its scripts")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dry", action="store_true", help="write no record")
    options = parser.parse_args()
    import torch

    if not (torch.cuda.is_available() or TINY):
        sys.exit("benchmarks.gpu_training needs a CUDA GPU, and torch sees none. Nothing written.")
    if options.nanogpt is None and options.only != ["transformer"]:
        print("left out: nanoGPT, as --nanogpt names no folder with its train.py.")
        options.only = [part for part in options.only if part == "transformer"]
    options.work = options.work.resolve()
    before, rows = before_timing(options.rounds, is_dry=options.dry), dict[str, Any]()
    for part in options.only:
        rows[part] = PARTS[part](options)
        print(*figures_of(part, rows[part]), sep="\n", flush=True)
        if not options.dry:  # after each: a GPU may be lent for less time than all of them take
            _write(rows, before)


def _write(rows: Mapping[str, Mapping[str, Any]], before: Mapping[str, Any]) -> None:
    import torch

    measuring.write_rows(
        "gpu_training",
        rows,
        title="Training on a GPU, beside plain torch modules and nanoGPT",
        recipes={part: {"settings": [*SETTINGS], "updates": UPDATES} for part in PARTS},
        figures=figures_of,
        details={"cuda": torch.version.cuda},
        packages=("torch", "triton"),
        threads=(THREADS,),
        started_on=before,
    )


def _ours(text: Path, run: Path, updates: int, *settings: str) -> dict[str, Any]:
    told = [part for setting in (*SETTINGS, *settings) for part in ("--set", setting)]
    found: dict[str, Any] = apart(
        "benchmarks.peers.regard_characters",
        *(RECIPE, "--text", text, "--run", run, "--updates", updates, *told),
        threads=THREADS,
    )
    return found


if __name__ == "__main__":
    main()
