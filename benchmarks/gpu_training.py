"""Training on a CUDA GPU: speed beside ``nn.Transformer`` and nanoGPT, and what is learned.

    python -m benchmarks.gpu_training --work WORK [--nanogpt FOLDER] [--only tiny base …] [--dry]

- ``tiny`` and ``base``: target tokens a second on the same batches of Multi30k, sorted by length,
  in bfloat16: plain ``nn.Transformer``, and regard as it is and with ``training.compile``.
- ``characters``: nanoGPT's setting for tiny Shakespeare (6 layers, 384 wide, context 256, 5,000
  iterations) by its own compiled script and by ``language-model-characters`` with these sizes:
  milliseconds of an iteration in turn, and the loss of the whole validation part, each side's
  weights being those of its best evaluation. Without ``--nanogpt`` ours stands alone.
- ``quality``: the recipe of ``benchmarks.multi30k`` with three seeds.

Stages leave their results in ``--work``, and are not done again while these are there. Every side
runs in a process of its own. Without a GPU it ends and says so; a tiny run goes on on the CPU,
where it shows that the script runs and times nothing that counts.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import measuring, multi30k
from benchmarks.measuring import TINY, Figure, Spread
from benchmarks.peers import nanogpt, prepare_multi30k, processes
from benchmarks.peers.sizes import SIZES

NAME = "gpu_training"
PLAIN = "benchmarks.peers.nn_transformer"
OURS = "benchmarks.peers.regard_speed"
CHARACTERS = "benchmarks.peers.regard_characters"
UPDATES, WARMUP = measuring.sized((220, 20), (2, 1))
ITERATIONS, EVALUATE_EVERY, TIMED, SETTLING = measuring.sized((5000, 250, 300, 50), (2, 1, 3, 1))
PRECISION = measuring.sized("bfloat16", "float32")
SEEDS, QUALITY_UPDATES = measuring.sized(((1, 2, 3), 7500), ((1,), 2))
# What is asked for: tokens a second beside each peer's, the loss, and BLEU.
PLAIN_BAR, NANOGPT_BAR, LOSS_BAR, BLEU_BAR = 1.5, 1.2, 1.47, 41.0
# nanoGPT's config/train_shakespeare_char.py in the words of a recipe.
SHAKESPEARE = {
    "data.context": 256,
    "model.model_dim": 384,
    "model.num_heads": 6,
    "model.num_layers": 6,
    "model.ffn_dim": 1536,
    "model.dropout": 0.2,
    "model.max_length": 256,
    "training.batch_tokens": 64 * 256,
    "training.precision": PRECISION,
    "training.compile": "true",
    "training.validate_every": EVALUATE_EVERY,
}
_TINY = {
    "model.model_dim": 16,
    "model.num_heads": 2,
    "model.num_layers": 1,
    "model.ffn_dim": 16,
    "training.compile": "false",
}


def device() -> str:
    """Where all is measured."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def main() -> None:
    """Go through the stages asked for, and write the record when all are there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder outside the repository")
    parser.add_argument("--nanogpt", type=Path, help="folder of its scripts")
    parser.add_argument("--only", nargs="+", choices=list(STAGES), default=list(STAGES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--dry", action="store_true", help="write no record")
    given = parser.parse_args()
    if device() == "cpu" and TINY is None:
        sys.exit(f"benchmarks.{NAME} needs a CUDA GPU, and torch sees none. Nothing written.")
    before = {**measuring.machine(), "gpu": _gpu()}
    given.work.mkdir(parents=True, exist_ok=True)
    for name in given.only:
        path = given.work / f"{name}.json"
        if not path.exists():
            found = STAGES[name](given)
            path.write_text(json.dumps({"machine": before, **found}, indent=1), "utf-8")
    done = [name for name in STAGES if (given.work / f"{name}.json").exists()]
    found = {name: json.loads((given.work / f"{name}.json").read_text("utf-8")) for name in done}
    figures = [figure for name in done for figure in FIGURES[name](name, found[name])]
    print(*figures, sep="\n")
    if given.dry or len(done) < len(STAGES):
        return
    path = measuring.write_record(
        NAME,
        title="Training on a GPU, beside nn.Transformer and nanoGPT",
        figures=figures,
        details={**found, "characters recipe": SHAKESPEARE, "nanoGPT's flags": nanogpt.GPU_FLAGS},
        packages=("torch", "triton", "numpy", "sentencepiece"),
        started_on=before,
    )
    print(f"wrote {path}")


def _gpu() -> str | None:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def speed(given: argparse.Namespace, *, name: str) -> dict[str, Any]:
    """Target tokens a second of each side on the same batches."""
    prepare_multi30k.prepare(measuring.corpora(), given.work)
    budget = SIZES[name].budget
    file = prepare_multi30k.write_batches(given.work, updates=UPDATES, sort=True, budget=budget)
    amount = ("--updates", UPDATES, "--warmup", WARMUP)
    how = ("--size", name, "--device", device(), "--precision", PRECISION)
    sides = {"nn.Transformer": (PLAIN, ()), "regard": (OURS, ())}
    if TINY is None:
        sides["regard, compiled"] = (OURS, ("--compile",))
    samples = measuring.alternate(
        {
            side: partial(
                processes.answer, module, file, *amount, *how, *more, threads=given.threads
            )
            for side, (module, more) in sides.items()
        },
        given.rounds,
    )
    return {
        "budget": budget,
        "rates": {n: [each["tokens"] / each["seconds"] for each in s] for n, s in samples.items()},
        "losses": {n: s[-1]["loss"] for n, s in samples.items()},
    }


def characters(given: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of an iteration of both sides, and their losses after all of them."""
    home, text = nanogpt.texts(given.work, given.nanogpt)
    flags, threads = {**nanogpt.GPU_FLAGS, "device": device()}, given.threads

    def our_side(run: str, updates: int) -> dict[str, Any]:
        table = SHAKESPEARE if TINY is None else {**SHAKESPEARE, **_TINY}
        table = {**table, "training.device": device()}
        settings = [word for key, value in table.items() for word in ("--set", f"{key}={value}")]
        names = ("language-model-characters", "--text", text, "--run", (given.work / run).resolve())
        return processes.answer(
            CHARACTERS, *names, "--updates", updates, *settings, threads=threads
        )

    def our_pace() -> float:
        run = f"timed-{len(list(given.work.glob('timed-*')))}"
        return statistics.median(our_side(run, TIMED)["milliseconds"][SETTLING:])

    def their_pace() -> float:
        found = nanogpt.train(home, flags, iterations=TIMED, threads=threads)
        return statistics.median(found["milliseconds"][SETTLING:])

    sides: dict[str, Callable[[], float]] = {"regard": our_pace}
    if given.nanogpt is not None:
        sides["nanoGPT"] = their_pace
    paces = measuring.alternate(sides, given.rounds)
    losses = {"regard": our_side("characters-run", ITERATIONS)["loss"]}
    if given.nanogpt is not None:
        nanogpt.train(
            home, flags, iterations=ITERATIONS, threads=threads, evaluate_every=EVALUATE_EVERY
        )
        found = processes.answer("benchmarks.peers.nanogpt", home, threads=threads)
        losses["nanoGPT"] = found["loss"]
    return {"milliseconds": paces, "losses": losses}


def quality(given: argparse.Namespace) -> dict[str, Any]:
    """BLEU of the tests by seed."""
    from benchmarks.training import train
    from regard.tasks import recipe_from_table

    found = {}
    for seed in SEEDS:
        table = multi30k.recipe_table(measuring.corpora(), QUALITY_UPDATES, seed)
        table["training"]["device"] = device()
        trained = train(recipe_from_table(table), given.work / f"multi30k-{seed}")
        found[str(seed)] = multi30k.measure(trained.predictor, measuring.corpora())
    return {"seeds": found}


def _speed_figures(name: str, found: Mapping[str, Any]) -> list[Figure]:
    rates = found["rates"]
    theirs = Spread.of(rates["nn.Transformer"]).median
    figures = []
    for side in rates.keys() - {"nn.Transformer"}:
        ratio = measuring.paired_ratio(rates[side], rates["nn.Transformer"])
        ours = Spread.of(rates[side]).median
        figures.append(
            Figure(
                what=f"Multi30k en→de, Transformer-{name}, {side}: target tokens a second on a GPU",
                ours=f"{ratio.median:.2f} × ({ours:,.0f})",
                beside=f"`nn.Transformer`, the same batches: {theirs:,.0f}",
                note=f"{PRECISION}, {found['budget']:,} tokens a batch, ±{ratio.relative:.0%}; "
                f"asked for: {PLAIN_BAR} ×",
            )
        )
    return sorted(figures, key=lambda figure: figure.what)


def _characters_figures(name: str, found: Mapping[str, Any]) -> list[Figure]:
    paces, losses = found["milliseconds"], found["losses"]
    figures = [
        Figure(
            what="Tiny Shakespeare, 6 layers of 384 on a GPU: loss of the whole validation part",
            ours=f"{losses['regard']:.3f}",
            beside=f"nanoGPT: {losses['nanoGPT']:.3f}" if "nanoGPT" in losses else "nothing",
            note=f"asked for: {LOSS_BAR} at most",
        )
    ]
    if "nanoGPT" in paces:
        ratio = measuring.paired_ratio(paces["nanoGPT"], paces["regard"])
        ours, theirs = (Spread.of(paces[side]).median for side in ("regard", "nanoGPT"))
        figures.append(
            Figure(
                what="Tiny Shakespeare, 6 layers of 384 on a GPU: tokens a second",
                ours=f"{ratio.median:.2f} × ({ours:.1f} ms an update)",
                beside=f"nanoGPT, compiled: {theirs:.1f} ms",
                note=f"{PRECISION}, ±{ratio.relative:.0%}; asked for: {NANOGPT_BAR} ×",
            )
        )
    return figures


def _quality_figures(name: str, found: Mapping[str, Any]) -> list[Figure]:
    main_test = multi30k.TESTS[0]
    of_each = [seed[main_test] for seed in found["seeds"].values()]
    scores = Spread.of(each["tokenised_lowercased_bleu"]["value"] for each in of_each)
    mean = statistics.fmean(scores.samples)
    copied = of_each[0]["copy_baseline_bleu"]["value"]
    return [
        Figure(
            what="Multi30k en→de on a GPU, tokenised lower-cased BLEU, test 2016",
            ours=f"{mean:.2f} ({scores.low:.2f} to {scores.high:.2f})",
            beside=f"published: {multi30k.PUBLISHED}; copying the source: {copied:.2f}",
            note=f"mean of {len(of_each)} seeds; asked for: {BLEU_BAR}",
        )
    ]


# Each leaves a file of its name.
STAGES: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "tiny": partial(speed, name="tiny"),
    "base": partial(speed, name="base"),
    "characters": characters,
    "quality": quality,
}
FIGURES: dict[str, Callable[[str, Mapping[str, Any]], list[Figure]]] = {
    "tiny": _speed_figures,
    "base": _speed_figures,
    "characters": _characters_figures,
    "quality": _quality_figures,
}


if __name__ == "__main__":
    main()
