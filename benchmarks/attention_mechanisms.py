"""Every way of attention on the phrasebook, with equal budgets in CPU time, by three seeds.

The packaged recipe of each (and what it differs from: one fixed context vector, plain additive
attention, a plain Transformer) is trained for the same CPU time. Recorded: how many outputs of the
test splits are right, and how far attention is from the gold links.

    python -m benchmarks.attention_mechanisms --work W [--minutes 2] [--only NAME ...] [--dry]

Run again after an interruption, it goes on where it was; a training that is finished and measured
has a file in ``W``, and the record is of those there are.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.equal_budgets import argument_parser, folder_name, train_for, translate
from benchmarks.measuring import mean_of_seeds
from regard.cli.recipes import packaged_recipe
from regard.inference import Predictor
from regard.inference.alignment import alignment_errors
from regard.metrics import exact_match
from regard.tasks import Recipe, read_recipe, recipe_from_table
from regard.text.phrasebook import phrases

_FEW = measuring.sized(None, 4)
SEEDS = measuring.sized((1, 2, 3), (1, 2))

# What the table calls each: its recipe, and model settings that differ from it.
MECHANISMS: dict[str, tuple[str, dict[str, Any]]] = {
    "RNN, fixed context": ("rnn-fixed", {}),
    "RNN, additive": ("rnn-attention", {}),
    "RNN, Luong dot": ("rnn-luong-dot", {}),
    "RNN, Luong general": ("rnn-luong-general", {}),
    "RNN, Luong location": ("rnn-luong-location", {}),
    "RNN, local-m": ("rnn-local-m", {}),
    "RNN, local-p": ("rnn-local-p", {}),
    "RNN, hard": ("rnn-hard", {}),
    "RNN, Graves' mixture": ("rnn-mixture", {}),
    "RNN, coverage": ("rnn-coverage", {}),
    "RNN, copying": ("rnn-copy", {}),
    "Convolutional": ("conv-seq2seq", {}),
    "Transformer": ("transformer-restricted", {"window": None}),
    "Transformer, restricted": ("transformer-restricted", {}),
    "Transformer, rotary": ("transformer-rotary", {}),
    "Transformer, relative": ("transformer-relative", {}),
    "Transformer, T5 bias": ("transformer-t5", {}),
    "Transformer, ALiBi": ("transformer-alibi", {}),
    "Transformer, grouped": ("transformer-grouped", {}),
    "Transformer, batch norm": ("transformer-batch-norm", {}),
    "Transformer, copying": ("transformer-copy", {}),
}


# A tiny run's: without attention, with a layer of its own, and with several.
_TINY = ["RNN, fixed context", "RNN, hard", "Transformer, restricted"]


def recipe_table(name: str, minutes: float, seed: int = 1) -> dict[str, Any]:
    """The recipe of one mechanism, with minutes instead of updates."""
    recipe, changes = MECHANISMS[name]
    table = read_recipe(packaged_recipe(recipe)).table()
    model = {**table["model"], **changes}
    table["model"] = {key: value for key, value in model.items() if value is not None}
    table["training"] = {**table["training"], "minutes": minutes, "seed": seed}
    del table["training"]["updates"]
    return table


def trainings(work: Path) -> dict[str, Recipe]:
    """The trainings of the record, by the names of its rows."""
    return {name: recipe_from_table(recipe_table(name, 1)) for name in MECHANISMS}


def measure(name: str, minutes: float, seed: int, run: Path) -> dict[str, Any]:
    """Train; right outputs of each test split, and alignment errors where the model attends."""
    table = recipe_table(name, minutes, seed)
    predictor, facts = train_for(table, run)
    attends = table["model"].get("attention") != "none"
    found: dict[str, Any] = {"training": facts}
    for split in ("test", "new"):
        pairs = phrases(split)[:_FEW]
        outputs = translate(predictor, [pair.source for pair in pairs])
        match = exact_match(outputs, [pair.references for pair in pairs])
        errors = errors_by_layer(predictor, phrases("valid")[:_FEW], pairs) if attends else None
        found[split] = {"exact_match": match.value, "alignment": errors}
    return found


def errors_by_layer(predictor: Predictor, choosing: Any, measured: Any) -> dict[str, Any]:
    """The error of each layer and of their mean, and which of them ``choosing`` prefers."""
    count = getattr(predictor.recipe.model, "num_decoder_layers", 1)
    layers = {"mean of layers": None, **{f"layer {i}": i for i in range(count)}}
    if count == 1:
        del layers["mean of layers"]
    before = {n: alignment_errors(predictor, choosing, layer=i) for n, i in layers.items()}
    chosen = min(before, key=lambda name: before[name].linked)
    found = {n: alignment_errors(predictor, measured, layer=i) for n, i in layers.items()}
    return {
        "layer": chosen,
        **found[chosen].to_dict(),
        "by_layer": {name: errors.to_dict() for name, errors in found.items()},
    }


def right(found: Mapping[str, Any], split: str) -> list[float]:
    """Shares of right outputs of a split by each seed, in percent."""
    return [seed[split]["exact_match"] for seed in found["seeds"].values()]


def below(results: Mapping[str, Any], other: str) -> list[str]:
    """Mechanisms whose best training gets less right of new combinations than the other's worst."""
    bar = min(right(results[other], "new"))
    return [name for name, found in results.items() if max(right(found, "new")) < bar]


def figures(results: Mapping[str, Any], minutes: float) -> list[measuring.Figure]:
    """One line for each mechanism."""
    lines = []
    for name, found in results.items():
        aligned, seeds = "no attention", found["seeds"].values()
        errors = [each["test"]["alignment"] for each in seeds]
        if errors[0] is not None:
            linked, overall = (
                mean_of_seeds([e[key] for e in errors], 3) for key in ("linked", "overall")
            )
            diagonal = errors[0]["diagonal_linked"]
            aligned = f"alignment error {linked} / {overall} (diagonal: {diagonal:.3f})"
        trained = [each["training"] for each in seeds]
        updates = [each["updates"] for each in trained]
        lines.append(
            measuring.Figure(
                what=f"Phrasebook, outputs right on test / new: {name}",
                ours=" / ".join(
                    f"{mean_of_seeds(right(found, split), 1)} %" for split in ("test", "new")
                ),
                beside=aligned,
                note=f"{len(seeds)} seeds, {minutes:g} CPU minutes each, {min(updates)} to "
                f"{max(updates)} updates, {trained[0]['parameters']:,} parameters",
            )
        )
    return lines


def main() -> None:
    """Train and measure each, write the record."""
    parser = argument_parser(__doc__ or "", minutes=2)
    names = measuring.sized([*MECHANISMS], _TINY)
    parser.add_argument("--only", nargs="+", choices=list(MECHANISMS), default=names)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before, minutes = measuring.machine(), arguments.minutes
    results: dict[str, Any] = {}
    for name in names:
        folder = arguments.work / folder_name(name.replace("'", ""))
        parts = {seed: folder / f"{seed}.json" for seed in SEEDS}
        for seed, file in parts.items() if name in arguments.only else ():
            run = folder / f"run-{seed}"
            measuring.once(file, partial(measure, name, minutes, seed, run))
        if all(file.exists() for file in parts.values()):
            seeds = {seed: measuring.once(file, dict) for seed, file in parts.items()}
            results[name] = {"recipe": recipe_table(name, minutes), "seeds": seeds}
            print(figures({name: results[name]}, minutes)[0], flush=True)
    if arguments.dry or len(results) < len(names):
        return
    measuring.write_record(
        "attention_mechanisms",
        title="Every way of attention on the phrasebook, equal budgets in CPU minutes",
        figures=figures(results, minutes),
        details={
            "cpu_minutes_each": minutes,
            "below_fixed_context": ", ".join(below(results, "RNN, fixed context")),
            "results": results,
        },
        threads=[arguments.threads],
        started_on=before,
    )


if __name__ == "__main__":
    main()
