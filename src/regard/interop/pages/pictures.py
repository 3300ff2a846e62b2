"""A picture that a Hugging Face vision model reads: its patches, their attention, and its class."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import DataError, RegardError, SettingError
from regard.interop.pages.explaining import likeliest_classes
from regard.interop.pages.sums import short
from regard.interop.watch import Watch, watch
from regard.tasks.drawing import words_text
from regard.tasks.labels.image_classification import CLASS, patch_measure
from regard.text.reading.pictures import read_pixels
from regard.viewer import Example, Prediction, example_of, in_one_line, in_patches

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

_MOST_LABELS = 10  # of the thousand that many models have


def reads_pictures(model: object) -> bool:
    """Whether a model of transformers, or its class, reads the pixels of pictures."""
    return getattr(model, "main_input_name", None) == "pixel_values"


def look_at_picture(
    model: "PreTrainedModel",
    processor: Any,
    picture: str | Path,
    layers: Iterable[int] | int | None,
    heads: Iterable[int] | int | None,
) -> tuple[Example, Watch]:
    """Attention between the patches of a picture file, and the likeliest classes if there are any.

    Raises:
        DataError: There is no such file, it is no picture, or the model cannot read its size.
        SettingError: The model's attention is not between the patches of the whole picture.
    """
    inputs = _read(model, processor, picture)
    try:
        with watch(model, layers, heads, keep=True) as seen:
            outputs = model(inputs.to(model.device, model.dtype))
    except RegardError:
        raise
    except ValueError as error:
        raise DataError(
            f"{picture} must become pixels that {type(model).__name__} reads; got: "
            f"{str(error).rstrip('.')}. The sizes in preprocessor_config.json must be those of "
            "config.json."
        ) from error
    before, patch = _layout(model, inputs, seen)
    image, names = in_patches(_as_seen(inputs[0], processor), patch, before=len(before))
    example = example_of(seen, words_text([*before, *names]), label=Path(picture).name)
    logits = getattr(outputs, "logits", None)
    labels = () if logits is None else likeliest_classes(model, logits[0])[:_MOST_LABELS]
    answer = Prediction(labels=labels)
    if heads is None and seen[-1].layer == getattr(model.config, "num_hidden_layers", 0) - 1:
        weights = seen.rows(seen[-1].layer, [0] if before else range(len(names)))[0]
        values = tuple(map(short, weights.float().mean((0, 1)).tolist()))
        answer = replace(answer, values=values, measure=patch_measure(has_class=bool(before)))
    has_answer = answer.labels or answer.values
    return replace(example, image=image, answer=answer if has_answer else None), seen


def _read(
    model: "PreTrainedModel", processor: Any, picture: str | Path
) -> Float[Tensor, "1 P Y X"]:
    """The pixels of a file, cut, scaled and normalised."""
    is_file = False
    with suppress(OSError):  # longer than any name
        is_file = Path(picture).is_file()
    if not is_file:
        raise DataError(
            f"picture must be a file for {type(model).__name__}, which reads pictures; got "
            f"{in_one_line(str(picture))!r}, which is no file here."
        )
    pixels = read_pixels(Path(picture), channels=getattr(model.config, "num_channels", 3))
    inputs: Tensor = processor(
        pixels.astype(np.uint8), input_data_format="channels_last", return_tensors="pt"
    )["pixel_values"]
    return inputs


def _layout(
    model: "PreTrainedModel", inputs: Float[Tensor, "1 P Y X"], seen: Watch
) -> tuple[list[str], tuple[int, int]]:
    """Names of the tokens that stand before the patches, and the rows and columns of a patch."""
    side = getattr(model.config, "patch_size", 1)
    rows, columns = (side, side) if isinstance(side, int) else side
    count = (inputs.shape[-2] // rows) * (inputs.shape[-1] // columns)
    tokens = {attention.summary.entropy.shape[-1] for attention in seen}
    before = _tokens_before(model.config)
    if tokens not in ({count}, {count + len(before)}):
        got = ", ".join(map(str, sorted(tokens)))
        raise SettingError(
            f"model must attend between all {count} patches of a picture to be looked at here; got "
            f"{got} tokens in {type(model).__name__}. Watch it: with regard.watch(model) as seen."
        )
    return before if count not in tokens else [], (rows, columns)


def _tokens_before(config: "PreTrainedConfig") -> list[str]:
    """Tokens that stand before the patches in the models that have a class token."""
    distillation = ["[DIST]"] * (config.model_type == "deit")
    return [CLASS, *distillation, *["[REG]"] * (getattr(config, "num_register_tokens", None) or 0)]


def _as_seen(inputs: Float[Tensor, "P Y X"], processor: Any) -> Float[np.ndarray, "Y X P"]:
    """Pixels of 0 to 1, cut and scaled as the model reads them, before they were normalised."""
    pixels = inputs.movedim(0, -1).float()
    if processor.do_normalize:
        pixels = pixels * torch.tensor(processor.image_std) + torch.tensor(processor.image_mean)
    return (pixels if processor.do_rescale else pixels / 255).clamp(0, 1).numpy()
