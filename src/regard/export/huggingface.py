"""A run as a folder that ``from_pretrained`` of transformers opens."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from torch import nn

from regard.config import JsonValue
from regard.export.form import PROGRAM, ExportForm, reading, run_program, trained_with
from regard.export.huggingface_models import Encoders, Held, LanguageModels, Shape, Translators
from regard.export.tokenizer_json import has_ties, tokenizer_config, tokenizer_json
from regard.files import fill_file
from regard.inference import Predictor
from regard.interop.checkpoints.models import save_checkpoint
from regard.models import Classifier, Decoder, Encoder, MaskedLanguageModel, Tagger, Transformer
from regard.runs import Run
from regard.runs.bundle import README
from regard.runs.files import new_folder
from regard.text import BOS_ID, Tokenizer

_SHAPES: Mapping[type[nn.Module], Shape] = {
    Classifier: Encoders(),
    Decoder: LanguageModels(),
    MaskedLanguageModel: Encoders(),
    Tagger: Encoders(),
    Transformer: Translators(),
}


# The type that a task's models are held in, where one is.
_HELD_TYPES = {
    "classification": "transformer",
    "generation": "transformer",
    "language_modelling": "decoder",
    "tagging": "transformer",
    "translation": "transformer",
}


# Names for users of the types that are inferred from data.
_NAMES = {
    "rnn_seq2seq": "a recurrent translator (model.type = 'rnn_seq2seq')",
    "recurrent": "a recurrent model (model.type = 'recurrent')",
    "convolutional": "a convolutional model (model.type = 'convolutional')",
    "bag": "a bag of words (model.type = 'bag')",
}


class HuggingFace(ExportForm):
    """A folder of config, weights, tokenizer and card, which needs nothing of ours."""

    purpose: ClassVar[str] = "a folder that from_pretrained of transformers opens"

    def usage(self, predictor: Predictor, name: str) -> str:
        return "With transformers, as the end of this page says; regard is not needed."

    def refuse(self, predictor: Predictor) -> str | None:
        kind, task = predictor.recipe.model_type, predictor.recipe.task
        reader = getattr(predictor.model, "reader", None)
        if isinstance(reader, Encoder) and reader.features is not None:
            return (
                f"model.type is {kind!r} of {task}, which is told what both texts share, and "
                "encoders of transformers read ids alone"
            )
        shape = _shape_of(predictor)
        if shape is None:
            held = _HELD_TYPES.get(task)
            cure = f"; {trained_with('model.type', held)}" if held not in (None, kind) else ""
            described = _NAMES.get(kind, f"a model of {task} with model.type = {kind!r}")
            return f"it is {described}, which transformers has not{cure}"
        return shape.refuse(predictor)

    def write(self, run: Run, predictor: Predictor, out: Path, *, readme: str) -> None:
        shape = _shape_of(predictor)
        assert shape is not None
        held = shape.hold(predictor)
        with new_folder(out) as folder:
            save_checkpoint(held.model, folder, layout=held.layout, settings=held.settings)
            for name, text in _texts(held, run, readme):
                path = folder / name
                path.parent.mkdir(exist_ok=True)
                fill_file(path, text.encode())
            if not _has_tokenizers(held):
                predictor.task.save(folder / "tokenizer")
                fill_file(folder / PROGRAM, _program(held).lstrip().encode())


def _shape_of(predictor: Predictor) -> Shape | None:
    """Kind of the model; None if transformers has none like it."""
    model = predictor.model
    if isinstance(model, Classifier | Tagger) and not isinstance(model.reader, Encoder):
        return None
    return _SHAPES.get(type(model))


def _texts(held: Held, run: Run, readme: str) -> Iterator[tuple[str, str]]:
    """The files of a folder that are text, but for its config."""
    if held.generation is not None:
        yield "generation_config.json", json.dumps(held.generation, indent=2) + "\n"
    for folder, tokenizer in held.tokenizers.items():
        if (text := _written(held, tokenizer)) is None:
            continue
        settings = tokenizer_config(
            begin=held.before[0] if held.before else BOS_ID,
            longest=held.longest,
            tells_segments=held.tells_segments,
        )
        yield str(Path(folder) / "tokenizer.json"), text
        yield str(Path(folder) / "tokenizer_config.json"), settings
    yield README, _card(held, run, readme)


def _written(held: Held, tokenizer: object) -> str | None:
    return tokenizer_json(tokenizer, before=held.before, after=held.after, mask=held.mask)


def _has_tokenizers(held: Held) -> bool:
    """Whether transformers has tokenizers like all of them."""
    return all(_written(held, tokenizer) is not None for tokenizer in held.tokenizers.values())


_TIES = (
    "Of two ways to cut a text that are equally probable, such as `aaa` `aa` and `aa` `aaa`, its "
    "tokenizer may take the other than regard's; both take what rounding makes the better one."
)


def _card(held: Held, run: Run, readme: str) -> str:
    """The page, with the header for the hub of Hugging Face before it and a script behind it."""
    lines = [
        "library_name: transformers",
        f"pipeline_tag: {held.pipeline}",
        "tags: [regard]",
        *(f"{name}: [{', '.join(values)}]" for name, values in _languages(run) if values),
    ]
    front, has_tokenizer = "\n".join(["---", *lines, "---"]), _has_tokenizers(held)
    parts = [front, readme.rstrip(), _script(held) if has_tokenizer else _without_tokenizer(held)]
    ties = [_TIES] if has_tokenizer and any(map(has_ties, held.tokenizers.values())) else []
    return "\n\n".join([*parts, *held.notes, *ties]) + "\n"


def _languages(run: Run) -> Iterator[tuple[str, list[str]]]:
    data = run.recipe.get("data")
    table: dict[str, JsonValue] = data if isinstance(data, dict) else {}
    languages = (table.get(name) for name in ("source_language", "target_language", "language"))
    yield "language", [language for language in languages if isinstance(language, str)]


def _script(held: Held) -> str:
    return f"""## In transformers

```python
from transformers import {held.opens}, AutoTokenizer

folder = "."  # this one
model = {held.opens}.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
{held.use.rstrip()}
```"""


def _without_tokenizer(held: Held) -> str:
    framed = " ".join(map(str, [*held.before, "…", *held.after]))
    run = run_program(needs="torch transformers sentencepiece")
    return f"""## In transformers

{run}

There is no tokenizer of transformers beside it: nothing in transformers cuts text as this run does.
The model reads ids as `{framed}`."""


def _program(held: Held) -> str:
    """The program of a folder without a tokenizer of transformers."""
    source, *targets = held.tokenizers.values()
    code = f"""
import torch
from transformers import {held.opens}

model = {held.opens}.from_pretrained(".")
"""
    if not isinstance(source, Tokenizer):
        return code
    sides = ("source", "target") if targets else (held.folder, held.folder)
    row = ", ".join([*map(str, held.before), "*encode(line)", *map(str, held.after)])
    output = "model(input_ids=ids).logits"
    if held.generation is not None:
        output = "decode([id_ for id_ in model.generate(ids)[0].tolist() if id_ > 3])"
        output += ' if encode(line) else ""'
    return f"""{reading(source)}{code}
(encode, _), (_, decode) = reader("{sides[0]}"), reader("{sides[1]}")
for line in sys.stdin:
    ids = torch.tensor([[{row}]])
    print({output})
"""
