"""Training on a CUDA GPU: a Transformer beside plain torch modules, characters beside nanoGPT.

    python -m benchmarks.gpu_training --work FOLDER [--nanogpt FOLDER] [--rounds 5] [--dry]

The Transformer is that of ``benchmarks.training_speed``, on the same batches with the same dropout.
Characters are those of tiny Shakespeare, by the settings that nanoGPT has for a GPU (6 layers, 384
wide, context 256, 64 windows a batch): its own script compiles its model, ours is not compiled.
Start-up, compiling and the first updates are not timed. Then both train 5,000 updates side by side,
validate every 250, and keep the weights of the lowest loss; the loss is over the *whole* validation
part, in the same windows, asked of each side's own model. Without a GPU it ends and says so.
"""

import argparse
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import measuring
from benchmarks.measuring import Figure, Spread, apart, before_timing, sized, write_record
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


def main() -> None:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder outside the repository")
    parser.add_argument("--nanogpt", type=Path, help="folder of its scripts")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dry", action="store_true", help="write no record")
    options = parser.parse_args()
    import torch

    if not (torch.cuda.is_available() or measuring.TINY):
        sys.exit("benchmarks.gpu_training needs a CUDA GPU, and torch sees none. Nothing written.")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    before = before_timing(options.rounds, is_dry=options.dry)
    work: Path = options.work.resolve()
    figures, details = list[Figure](), dict[str, Any]()
    amount = ("--updates", UPDATES, "--warmup", WARMUP, "--device", device)
    sides = both_sides(
        "transformer", "bfloat16", write_batches(work, UPDATES), *amount, threads=THREADS
    )
    rates, ratios, details["transformer"] = speeds(sides, options.rounds)
    figures += [
        figure("transformer", "bfloat16", "on a GPU", name, ratio, rates)
        for name, ratio in ratios.items()
    ]
    if options.nanogpt is None:
        print("left out: nanoGPT, as --nanogpt names no folder with its train.py. No record.")
    else:
        figures += characters(options.nanogpt, work, options.rounds, details)
    print(*figures, sep="\n")
    if options.dry or options.nanogpt is None:
        return
    write_record(
        "gpu_training",
        title="Training on a GPU, beside plain torch modules and nanoGPT",
        figures=figures,
        details={"cuda": torch.version.cuda, **details, "nanoGPT's settings here": SETTINGS},
        packages=("torch", "triton"),
        threads=(THREADS,),
        rounds=options.rounds,
        started_on=before,
    )


def characters(scripts: Path, work: Path, rounds: int, details: dict[str, Any]) -> list[Figure]:
    """Measure nanoGPT's setting: milliseconds of an update, then the loss of a whole training."""
    home, text = nanogpt.texts(work, scripts)
    train = partial(nanogpt.train, home, threads=THREADS, flags=nanogpt.GPU_FLAGS)
    whole = {**nanogpt.GPU_FLAGS, "eval_interval": "250", "always_save_checkpoint": "False"}

    def pace(found: dict[str, Any]) -> float:
        return statistics.median(found["milliseconds"][SETTLING:])

    def ours(run: str, updates: int, *settings: str) -> dict[str, Any]:
        told = [part for setting in (*SETTINGS, *settings) for part in ("--set", setting)]
        found: dict[str, Any] = apart(
            "benchmarks.peers.regard_characters",
            *(RECIPE, "--text", text, "--run", work / run, "--updates", updates, *told),
            threads=THREADS,
        )
        return found

    def our_pace() -> float:
        number = len(list(work.glob("timed-*")))
        return pace(ours(f"timed-{number}", TIMED))

    def their_pace() -> float:
        return pace(train(iterations=TIMED))

    samples = measuring.alternate({"regard": our_pace, "nanoGPT": their_pace}, rounds)
    ratio = measuring.paired_ratio(samples["regard"], samples["nanoGPT"])
    with ThreadPoolExecutor() as both:
        theirs = both.submit(lambda: train(iterations=WHOLE, flags=whole))
        mine = ours("whole", WHOLE, "training.validate_every=250", "training.keep=1")
        theirs.result()
    their = apart("benchmarks.peers.nanogpt", home, "--threads", THREADS, threads=THREADS)
    details["characters"] = {
        "milliseconds": {name: Spread.of(each).table() for name, each in samples.items()},
        "loss": {"regard": mine["loss"], "nanoGPT": their["loss"]},
    }
    what = "Tiny Shakespeare by nanoGPT's settings for a GPU, bfloat16, on a GPU"
    return [
        Figure(
            what=f"{what}: time of an update",
            ours=f"{statistics.median(samples['regard']):.1f} ms",
            beside=f"nanoGPT, compiled: {statistics.median(samples['nanoGPT']):.1f} ms",
            note=f"{ratio.median:.2f} × its time, ±{ratio.relative:.0%}",
        ),
        Figure(
            what=f"{what}: loss of the whole validation part",
            ours=f"{mine['loss']:.3f}",
            beside=f"nanoGPT: {their['loss']:.3f}",
            note=f"{WHOLE:,} updates each, the weights of the lowest validation loss",
        ),
    ]


if __name__ == "__main__":
    main()
