"""Every way of attention on the phrasebook, with equal budgets in CPU time.

The packaged recipe of each (and what it differs from: one fixed context vector, plain additive
attention, a plain Transformer) is trained for the same CPU time. Recorded: how many outputs of the
test splits are right, how far attention is from the gold links, and where each one looks when it
translates 我爱中国, drawn into ``docs/figures/attention_mechanisms.svg``.

    python -m benchmarks.attention_mechanisms --work W [--minutes 2] [--threads 1] [--dry]

Run again after an interruption, it goes on where it was.
"""

from collections.abc import Mapping
from typing import Any

import torch

from benchmarks import measuring, weight_maps
from benchmarks.alignment import errors_by_layer
from benchmarks.equal_budgets import argument_parser, folder_name, train_for, translate
from regard.cli.recipes import packaged_recipe
from regard.inference import Predictor
from regard.metrics import exact_match
from regard.tasks import read_recipe
from regard.text.phrasebook import phrases

SENTENCE = "我爱中国"
FIGURE = measuring.DRAWINGS / "attention_mechanisms.svg"
_FEW = measuring.sized(None, 4)

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


def recipe_table(name: str, minutes: float) -> dict[str, Any]:
    """The recipe of one mechanism, with minutes instead of updates."""
    recipe, changes = MECHANISMS[name]
    table = read_recipe(packaged_recipe(recipe)).table()
    model = {**table["model"], **changes}
    table["model"] = {key: value for key, value in model.items() if value is not None}
    table["training"] = {**table["training"], "minutes": minutes}
    del table["training"]["updates"]
    return table


def measure(predictor: Predictor) -> dict[str, Any]:
    """Right outputs of each test split; alignment errors where the model attends."""
    attends = predictor.recipe.table()["model"].get("attention") != "none"
    found: dict[str, Any] = {}
    for split in ("test", "new"):
        pairs = phrases(split)[:_FEW]
        outputs = translate(predictor, [pair.source for pair in pairs])
        match = exact_match(outputs, [pair.references for pair in pairs])
        errors = errors_by_layer(predictor, phrases("valid")[:_FEW], pairs) if attends else None
        found[split] = {"exact_match": match.value, "alignment": errors}
    return found


def picture(name: str, predictor: Predictor, layer: int | None) -> weight_maps.WeightMap:
    """Where the model looks when it translates the sentence: the layer that aligns best."""
    found = predictor.translate([SENTENCE])[0][0]
    look = predictor.attention(SENTENCE, found.tokens)
    rows = look.cross(layer)[: len(look.output_pieces), : len(look.source_pieces)]
    return weight_maps.WeightMap(
        title=name,
        across=tuple(piece.text for piece in look.source_pieces),
        down=tuple(piece.text.strip() for piece in look.output_pieces),
        rows=tuple(tuple(row) for row in rows.tolist()),
    )


def figures(results: Mapping[str, Any], minutes: float) -> list[measuring.Figure]:
    """One line for each mechanism."""
    lines = []
    for name, found in results.items():
        test, training = found["measured"]["test"], found["training"]
        errors = test["alignment"]
        aligned = "no attention"
        if errors is not None:
            aligned = (
                f"alignment error {errors['linked']:.3f} / {errors['overall']:.3f} "
                f"(diagonal: {errors['diagonal_linked']:.3f})"
            )
        lines.append(
            measuring.Figure(
                what=f"Phrasebook, outputs right on test / new: {name}",
                ours=f"{test['exact_match']:.1f} % / "
                f"{found['measured']['new']['exact_match']:.1f} %",
                beside=aligned,
                note=f"{minutes:g} CPU minutes, {training['updates']} updates, "
                f"{training['parameters']:,} parameters",
            )
        )
    return lines


def main() -> None:
    """Train and measure each, draw the maps, write the record."""
    parser = argument_parser(__doc__ or "", minutes=2)
    parser.add_argument(
        "--only", nargs="+", choices=list(MECHANISMS), help="some of them; no record"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before, minutes = measuring.machine(), arguments.minutes
    results: dict[str, Any] = {}
    maps: list[weight_maps.WeightMap] = []
    for name in arguments.only or measuring.sized([*MECHANISMS], _TINY):
        table = recipe_table(name, minutes)
        predictor, facts = train_for(table, arguments.work / folder_name(name.replace("'", "")))
        results[name] = {"training": facts, "recipe": table, "measured": measure(predictor)}
        if (errors := results[name]["measured"]["test"]["alignment"]) is not None:
            _, _, number = errors["layer"].rpartition("layer ")
            layer = int(number) if number.isdigit() else None
            maps.append(picture(name, predictor, layer))
        print(figures({name: results[name]}, minutes)[0], flush=True)
    if maps:
        (arguments.work / FIGURE.name).write_text(weight_maps.draw(maps), encoding="utf-8")
    if arguments.dry or arguments.only:
        return
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    FIGURE.write_text(weight_maps.draw(maps), encoding="utf-8")
    measuring.write_record(
        "attention_mechanisms",
        title="Every way of attention on the phrasebook, equal budgets in CPU minutes",
        figures=figures(results, minutes),
        details={
            "cpu_minutes_each": minutes,
            "threads": arguments.threads,
            "sentence": SENTENCE,
            "results": results,
        },
        started_on=before,
    )


if __name__ == "__main__":
    main()
