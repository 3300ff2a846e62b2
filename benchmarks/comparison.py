"""``regard compare`` and its subcommands, run once: the record, and the pictures of the docs.

    python -m benchmarks.comparison [--threads 1] [--dry]

What is counted does not depend on the machine: operations, steps, paths, bytes, gradients. Seconds
do; lengths go to 4,096. Draws ``docs/figures/compare_*.svg``.
"""

import argparse
from typing import Any

from benchmarks.measuring import DRAWINGS, Figure, machine, sized, write_record

LENGTHS = sized((64, 128, 256, 512, 1024, 2048, 4096), (16, 32, 64))
WIDTH, WINDOW = sized((64, 32), (8, 4))
# File name, comparison, number of its picture.
PICTURES = (
    ("operations", "architectures", 0),
    ("paths", "architectures", 2),
    ("time", "architectures", 3),
    ("memory", "architectures", 4),
    ("gradients", "gradients", 0),
    ("entropy", "scores", 1),
    ("positions", "positions", 0),
    ("norms", "norms", 1),
    ("bandwidths", "bandwidths", 0),
)


def main() -> None:
    """Measure, draw, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dry", action="store_true", help="measure, and write nothing")
    arguments = parser.parse_args()
    import torch

    from regard import comparison
    from regard.comparison.drawing import draw

    torch.set_num_threads(arguments.threads)
    facts = machine()
    found: dict[str, Any] = {
        "architectures": comparison.architectures(lengths=LENGTHS, width=WIDTH, window=WINDOW),
        "gradients": comparison.gradients(),
        "scores": comparison.scores(),
        "positions": comparison.positions(),
        "norms": comparison.norms(),
        "bandwidths": comparison.bandwidths(),
    }
    lines = figures(found)
    for line in lines:
        print(line)
    if arguments.dry:
        return
    for name, of, place in PICTURES:
        path = DRAWINGS / f"compare_{name}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(draw(found[of].report().pictures[place]), "utf-8")
    details = {name: each.to_dict() for name, each in found.items()}
    del details["positions"]["matrix"]  # the formula has it
    write_record(
        "comparison",
        title="Layers, gradients, scores, positions, norms and bandwidths side by side",
        figures=lines,
        details=details,
        started_on=facts,
    )


def figures(found: dict[str, Any]) -> list[Figure]:
    """The lines for docs/measured.md."""
    layers = found["architectures"]
    written, run = layers["attention-written"], layers["attention"]
    recurrent, dilated = layers["recurrence"], layers["dilated"]
    setting = f"d {layers.width}"
    threads = f"threads: {layers.threads}"
    curves = {curve.title: curve for curve in found["gradients"].curves}
    scores = {curve.title: curve for curve in found["scores"].curves}
    norms = {curve.title: curve for curve in found["norms"].curves}
    far = found["gradients"].length - 1

    def kept(title: str) -> str:
        return f"{curves[title].norms[far] / curves[title].norms[1]:.2g}"

    return [
        Figure(
            what=f"Memory of a training step of self-attention, n = {run.lengths[-1]:,}, {setting}",
            ours=f"{run.bytes[-1] / 2**20:.1f} MiB, ∝ n^({run.bytes_growth})",
            beside=f"with its weights built: {written.bytes[-1] / 2**20:.0f} MiB, "
            f"∝ n^({written.bytes_growth})",
            note="bytes of tensors counted, float32",
        ),
        Figure(
            what=f"Time of the same, n = {run.lengths[-1]:,}, {setting}",
            ours=f"{run.seconds[-1]:.2f} s, ∝ n^({run.seconds_growth})",
            beside=f"with its weights built: {written.seconds[-1]:.2f} s, "
            f"∝ n^({written.seconds_growth}); a recurrence: {recurrent.seconds[-1]:.2f} s, "
            f"∝ n^({recurrent.seconds_growth})",
            note=threads,
        ),
        Figure(
            what=f"Steps that wait for each other, n = {run.lengths[-1]:,}; "
            f"longest path, n = {run.path_lengths[-1]}",
            ours=f"{run.dependent_steps[-1]}; {run.paths[-1]}",
            beside=f"a recurrence: {recurrent.dependent_steps[-1]:,}; {recurrent.paths[-1]}; "
            f"dilated convolutions: {dilated.dependent_steps[-1]}; {dilated.paths[-1]}",
            note="kernels traced; hops until a gradient arrives",
        ),
        Figure(
            what=f"Gradient that arrives from {far} places back, relative to 1 place",
            ours=f"self-attention {kept('self-attention')}",
            beside=f"RNN of spectral radius 0.9: {kept('RNN, ρ = 0.9')}, 1.5: "
            f"{kept('RNN, ρ = 1.5')}; LSTM with forget bias 1: {kept('LSTM, forget bias 1')}",
            note="norm of the Jacobian, small inputs",
        ),
        Figure(
            what="Entropy of the softmax over 32 keys, d = 4 → 1,024",
            ours="scaled dot {:.2f} → {:.2f}, additive {:.2f} → {:.2f}".format(
                *(scores[t].entropy[k] for t in ("scaled dot", "additive") for k in (0, -1))
            ),
            beside="dot {:.2f} → {:.2f}; all alike: 3.47".format(
                *(scores["dot"].entropy[k] for k in (0, -1))
            ),
            note="nats, random queries and keys",
        ),
        Figure(
            what="Deviation of normed states at 16 times the lengths of training (one is right)",
            ours=f"layer norm {norms['layer norm'].deviation[-1]:.2f}",
            beside=f"batch norm {norms['batch norm'].deviation[-1]:.2f}",
            note="what attention makes of random tokens",
        ),
    ]


if __name__ == "__main__":
    main()
