"""A text gets the same answer and score by itself and among others, over the command line."""

import json
from pathlib import Path

import pytest
import tomli_w
from tests.end_to_end.tiny_tasks import NAMES, TINY, TRAINING, asked, said

from regard.runtime import preparing

pytestmark = pytest.mark.slow

_SIZES = {"model_dim": 24, "num_heads": 4, "ffn_dim": 40}
_LAYERS = {"num_encoder_layers": 2, "num_decoder_layers": 2}
_TRANSLATOR = {"type": "transformer", **_SIZES, **_LAYERS}
_READER = {"type": "transformer", **_SIZES, "num_layers": 2}
_RECURRENT = {"type": "recurrent", "embed_dim": 12, "hidden_dim": 20}

# A task, its model, and settings of its decoding.
RUNS = {
    "translator": ("translation", _TRANSLATOR, {}),
    "greedy translator": ("translation", _TRANSLATOR, {"method": "greedy"}),
    "gated translator": ("translation", {**_TRANSLATOR, "activation": "swiglu"}, {}),
    "recurrent translator": ("translation", TINY["translation"].table["model"], {}),
    "language model": (
        "language_modelling",
        {**_READER, "type": "decoder", "positions": "rotary"},
        {"max_tokens": 8},
    ),
    "recurrent language model": ("language_modelling", _RECURRENT, {"max_tokens": 8}),
    "classifier": ("classification", _READER, {}),
    "recurrent classifier": ("classification", _RECURRENT, {}),
    "tagger": ("tagging", _READER, {}),
    "recurrent tagger": ("tagging", _RECURRENT, {}),
    "finder of answers": ("question_answering", _READER, {}),
    "recurrent finder of answers": (
        "question_answering",
        {"type": "match", "embed_dim": 12, "hidden_dim": 12},
        {},
    ),
}
ROUNDED = [
    *("translator", "greedy translator", "gated translator", "language model"),
    *("classifier", "tagger", "finder of answers"),
]
CASES = [(name, "float32") for name in RUNS] + [(name, "int8") for name in ROUNDED]
CASES += [(name, "bfloat16") for name in ("translator", "language model", "finder of answers")]


@pytest.fixture(scope="module")
def runs(regard, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Run folders that are trained when they are first wanted."""
    folder = tmp_path_factory.mktemp("company")

    class Runs(dict):
        def __missing__(self, name: str) -> Path:
            task, model, decoding = RUNS[name]
            tiny, place = TINY[task], folder / name.replace(" ", "-")
            place.mkdir()
            (place / tiny.file).write_text(tiny.text(120), "utf-8")
            table = {**tiny.table, "model": model, **({"decoding": decoding} if decoding else {})}
            data = {**tiny.table.get("data", {}), "train": str(place / tiny.file)}
            recipe = {"task": task, **table, "data": data, "training": TRAINING}
            (place / "recipe.toml").write_text(tomli_w.dumps(recipe), "utf-8")
            done = regard("train", place / "recipe.toml", "--run", place / "run")
            assert done.code == 0, done
            self[name] = place / "run"
            return self[name]

    return Runs()


def line(task: str, number: int) -> str:
    """A line of some words, of a question with a story."""
    if task == "question_answering":
        rest = " ".join(said(each) for each in range(number))
        question = asked(number)
        return json.dumps(
            {"question": question["question"], "context": f"{question['context']} {rest}"}
        )
    return " ".join([NAMES[number % 7], *said(number).split()[: 1 + number % 6]])


@pytest.mark.parametrize(("name", "weights"), CASES)
def test_answers_do_not_depend_on_their_company(regard, runs, name, weights, tmp_path, monkeypatch):
    # Every processor multiplies bfloat16, most of them slowly.
    monkeypatch.setattr(preparing, "multiplies_bfloat16", lambda device: True)
    task = RUNS[name][0]
    lines = [line(task, number) for number in range(23)]
    ending = "jsonl" if task == "question_answering" else "txt"
    (tmp_path / f"all.{ending}").write_text("\n".join(lines) + "\n", "utf-8")
    asking = ("--precision", weights, "--output-format", "jsonl")
    many = regard("predict", runs[name], tmp_path / f"all.{ending}", *asking)
    assert many.code == 0, many
    together = many.out.splitlines()
    assert len(together) == len(lines)
    for place in (0, 5, 22):
        one = regard("predict", runs[name], *asking, stdin=f"{lines[place]}\n".encode())
        assert one.out.splitlines() == [together[place]]
