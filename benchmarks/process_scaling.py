"""Training by one process and by two of one thread each, what they send each other, and on paper.

    python -m benchmarks.process_scaling --work WORK [--rounds 5] [--dry]

``regard train transformer-tiny`` on the phrasebook, without dropout: target tokens a second between
two checkpoints, by one process and by two in turn. What is sent in an update is counted by the
system, as the difference of two trainings of other lengths, beside the closed form of a ring: each
of N processes sends ``2 (N − 1) / N`` times the bytes of the gradients (Patarasuk & Yuan, 2009,
https://doi.org/10.1016/j.jpdc.2008.09.002).

On paper, the same is said of 8 and of 64 GPUs: an update takes the time of its products, 6
operations for each weight and token (Kaplan et al., 2020, https://arxiv.org/abs/2001.08361), and
then that of the ring, as gradients are sent when all of them are known.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measuring import (
    TINY,
    Figure,
    Spread,
    alternate,
    machine,
    paired_ratio,
    sized,
    thread_environment,
    write_record,
)

NAME = "process_scaling"
RECIPE = "transformer-tiny"
WARMUP, UPDATES = sized((10, 50), (1, 2))
COUNTS = (1, 2)
SETTINGS = (
    "model.dropout=0.0",
    "training.validation_pairs=0",
    "training.precision=float32",
)
SMALL = (
    "tokenizer.type=words",
    "model.model_dim=8",
    "model.num_heads=2",
    "model.ffn_dim=8",
    "training.batch_tokens=128",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """What joins GPUs.

    Attributes:
        name: For people.
        bytes_a_second: That one GPU can send, while its neighbours send too.
        latency: Seconds until the first byte is there.
    """

    name: str
    bytes_a_second: float
    latency: float


# Operations of an H100 in bfloat16 (dense, of its data sheet) of which trainings reach some 0.4.
GPU = 0.4 * 989e12
# Of its data sheet: 900 GB/s both ways, of which rings reach some 0.8.
NVLINK = Link(name="NVLink", bytes_a_second=0.8 * 450e9, latency=5e-6)
# One card for a machine of eight.
ETHERNET = Link(name="100 Gbit/s for 8 GPUs", bytes_a_second=12.5e9 / 8, latency=20e-6)
# Weights, and tokens of each GPU in an update: the base model of the paper, its batches, and more.
PLANS = (("base", 65e6, 3125), ("base", 65e6, 25_000), ("big", 213e6, 25_000))
BUCKET = 25 * 2**20


def ring_bytes(parameters: float, processes: int, *, width: int = 4) -> float:
    """The bytes that one of several processes sends in an update.

    Args:
        parameters: How many weights there are.
        processes: How many have a copy each.
        width: Bytes of a gradient.

    Example:
        >>> ring_bytes(100, 2), ring_bytes(100, 4)
        (400.0, 600.0)
    """
    return 2 * (processes - 1) / processes * width * parameters


def on_paper(parameters: float, tokens: float, processes: int, link: Link) -> dict[str, float]:
    """Seconds of an update and the efficiency of several GPUs, beside one with as many tokens.

    Args:
        parameters: Of the model.
        tokens: That each GPU reads in an update.
        processes: How many GPUs.
        link: What joins them.

    Example:
        >>> link = Link(name="", bytes_a_second=1e9, latency=0.0)
        >>> found = on_paper(1e8, GPU / 6e8, 2, link)
        >>> found["computing"], found["sending"], round(found["efficiency"], 3)
        (1.0, 0.4, 0.714)
    """
    computing = 6 * parameters * tokens / GPU
    steps = 2 * (processes - 1) * -(-4 * parameters // BUCKET)
    sending = ring_bytes(parameters, processes) / link.bytes_a_second + steps * link.latency
    return {
        "computing": computing,
        "sending": sending,
        "waiting_for_first_bytes": steps * link.latency,
        "efficiency": computing / (computing + sending),
    }


def sent() -> int:
    """The bytes that processes of this machine have sent each other so far."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    (loopback,) = [line for line in lines if line.strip().startswith("lo:")]
    return int(loopback.partition(":")[2].split()[8])


def train(work: Path, processes: int, updates: int) -> dict[str, float]:
    """A training from the start: what was sent meanwhile, and where it came."""
    from regard.runs import Run

    run = work / f"by{processes}"
    shutil.rmtree(run, ignore_errors=True)
    small = (*SMALL, f"data.train={_few_pairs(work)}") if TINY is not None else ()
    limits = (f"training.updates={updates}", f"training.validate_every={min(WARMUP, updates)}")
    text = "data.train=phrasebook"
    settings = [word for each in (text, *SETTINGS, *small, *limits) for word in ("--set", each)]
    command = [sys.executable, "-m", "regard", "train", RECIPE, "--run", str(run), *settings]
    before = sent()
    subprocess.run(
        [*command, "--set", "training.keep=1000", "--processes", str(processes)],
        env=thread_environment(1),
        check=True,
        capture_output=True,
    )
    opened = Run.open(run)
    first, last = (_position(opened.checkpoints()[place]) for place in (0, -1))
    weights = {id(each): each.numel() for each in opened.load_model().values()}
    taken = last["seconds"] - first["seconds"]
    return {
        "sent": sent() - before,
        "parameters": sum(weights.values()),
        "tokens_a_second": (last["tokens"] - first["tokens"]) / taken if taken else 0.0,
    }


def _few_pairs(work: Path) -> Path:
    """A text that is read in no time."""
    work.mkdir(parents=True, exist_ok=True)
    file = work.resolve() / "pairs.tsv"
    file.write_text("".join(f"a {n} b\tb {n} a\n" for n in range(60)), encoding="utf-8")
    return file


def _position(checkpoint: Any) -> Mapping[str, float]:
    found: Mapping[str, float] = checkpoint.load_entry("position")
    return found


def main() -> None:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="where run folders are written")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dry", action="store_true", help="write no record")
    options = parser.parse_args()
    before = machine()
    short = train(options.work, 2, WARMUP)
    sides = {str(count): partial(train, options.work, count, UPDATES) for count in COUNTS}
    samples = alternate(sides, options.rounds, report=lambda line: print(line[:100]))
    speeds = {count: [each["tokens_a_second"] for each in samples[str(count)]] for count in COUNTS}
    gain = paired_ratio(speeds[2], speeds[1])
    measured = Spread.of(
        (each["sent"] - short["sent"]) / (UPDATES - WARMUP) / 2 for each in samples["2"]
    )
    expected = ring_bytes(short["parameters"], 2)
    paper = {
        f"{name}, {tokens:,} tokens each, {count} GPUs, {link.name}": on_paper(
            parameters, tokens, count, link
        )
        for name, parameters, tokens in PLANS
        for count, link in ((8, NVLINK), (64, NVLINK), (64, ETHERNET))
    }
    figures = [
        Figure(
            what=f"Training by two processes, {short['parameters']:,} weights, one thread each",
            ours=f"{gain.median:.2f} × the tokens a second of one process",
            beside="2 × where nothing is waited for",
            note=f"{gain.median / 2:.0%} efficient; {Spread.of(speeds[1]).median:,.0f} tokens a "
            "second by one",
        ),
        Figure(
            what="Bytes that each of two processes sends in an update",
            ours=f"{measured.median / 1e6:.2f} MB",
            beside=f"{expected / 1e6:.2f} MB by the closed form of a ring",
            note="counted by the system, headers included",
        ),
        *(
            Figure(
                what=f"On paper, not measured: {name}",
                ours=f"{found['efficiency']:.0%} efficient",
                beside="100 % where nothing is sent",
                note=f"{1000 * found['computing']:.1f} ms of products, "
                f"{1000 * found['sending']:.1f} ms of sending",
            )
            for name, found in paper.items()
        ),
    ]
    print(*figures, sep="\n")
    if options.dry:
        return
    write_record(
        NAME,
        title="Training by several processes",
        figures=figures,
        details={
            "rounds": options.rounds,
            "tokens_a_second": {str(n): Spread.of(each).table() for n, each in speeds.items()},
            "gain": gain.table(),
            "sent": measured.table(),
            "closed_form": expected,
            "on_paper": paper,
        },
        started_on=before,
    )


if __name__ == "__main__":
    main()
