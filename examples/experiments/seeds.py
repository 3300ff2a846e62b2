"""A small translator from several seeds: the mean and the spread of its attention weights.

    python examples/experiments/seeds.py [--runs 8] [--folder seeds] [--out FILE.svg] [--data FILE]

Runs of the recipe ``demo`` differ in their seed alone: where parameters begin, and in which order
sentences come. Finished runs in the folder are used as they are. The same is drawn of any runs of
one recipe by ``regard look RUN RUN RUN 我爱中国``.
"""

import argparse
import json
from pathlib import Path

import matplotlib.pyplot as plt

import regard
from regard.inference.seeds import weights_of_runs
from regard.runs import Run, is_run
from regard.viewer.spread import draw_spread

SENTENCE = "我爱中国"
FONTS = ["DejaVu Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "sans-serif"]


def trained(folder, seed, updates):
    """A translator of one seed, as it is in the folder or trained into it."""
    run = Path(folder) / f"seed-{seed}"
    if is_run(run) and Run.open(run).is_finished:
        return regard.load(run)
    settings = {"training.seed": seed, "training.updates": updates}
    settings["training.validate_every"] = updates
    return regard.train("demo", run=run, settings=settings).predictor


def main(runs, folder, out, data=None, updates=440):
    """Train, print and draw."""
    predictors = [trained(folder, seed, updates) for seed in range(1, runs + 1)]
    for seed, predictor in enumerate(predictors, 1):
        print(f"seed {seed}: {predictor.translate([SENTENCE])[0].best.text}")
    spread = weights_of_runs(predictors, SENTENCE)
    print(draw_spread(spread))
    if data is not None:
        Path(data).write_text(json.dumps(spread.as_data(), ensure_ascii=False) + "\n", "utf-8")
    plt.rcParams["font.family"] = FONTS
    figure, axes = plt.subplots()
    axes.imshow(spread.mean, cmap="YlGnBu", vmin=0, vmax=1)
    for row, cells in enumerate(spread.mean):
        for column, mean in enumerate(cells):
            axes.text(column, row, f"{mean:.2f}\n±{spread.deviation[row][column]:.2f}", ha="center")
    axes.set_xticks(range(len(spread.source_tokens)), spread.source_tokens)
    axes.set_yticks(range(len(spread.output_tokens)), spread.output_tokens)
    figure.savefig(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--folder", default="seeds")
    parser.add_argument("--out", default="seeds.svg")
    parser.add_argument("--data")
    main(**vars(parser.parse_args()))
