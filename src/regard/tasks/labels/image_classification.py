"""Image classification: one label for a picture, such as the digit that it shows."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.config import JsonValue
from regard.errors import DataError, SettingError
from regard.fields import Count, Positive
from regard.models import VisionTransformer, VisionTransformerConfig
from regard.tasks.batches import Batch, Sample
from regard.tasks.drawing import Drawing, Shade, words_text
from regard.tasks.labels.label_task import Fields, LabelPrediction, LabelTask, Logits, learn_labels
from regard.tasks.oddities import CheckedExample
from regard.tasks.settings.data import PicturesData
from regard.tasks.settings.recipe import Recipe
from regard.text import BadLines
from regard.text.reading.pictures import (
    Picture,
    picture_of,
    read_picture_folder,
    read_pictures,
    read_pixels,
)
from regard.text.reading.records import Handling, object_of
from regard.text.reading.sources import shards
from regard.viewer import in_patches

__all__ = ["ImageClassification", "PicturesData"]

# Ends of training and of validation among scikit-learn's 1,797 digits, in their order, in which
# the digits of a writer stand together.
_DIGITS = (1197, 1497)
# The token before a picture's patches, whose state becomes the label.
CLASS = "⟨class⟩"
_OF_SPLIT = re.compile(r"(train|valid|test):(\d+)")


class ImageClassification(LabelTask[Picture]):
    """Pictures to labels.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> pixels = np.array([[[0], [4]], [[4], [0]]], np.float32)
        >>> known = [Picture(pixels, "up", "a:1"), Picture(pixels[::-1], "down", "a:2")]
        >>> recipe = recipe_from_table({"task": "image_classification"})
        >>> task = ImageClassification.learn(recipe, known)
        >>> task.labels, task.shape, task.mean, task.deviation
        (['down', 'up'], (2, 2, 1), 2.0, 2.0)
        >>> task.encode(known)[0]["pixels"].tolist()
        [[[-1.0, 1.0], [1.0, -1.0]]]
    """

    unit: ClassVar[str] = "pictures"
    are_texts: ClassVar[bool] = False
    request_name: ClassVar[str] = "PICTURE"
    fields: ClassVar[Fields] = {}
    learned = ("labels", "shape", "mean", "deviation", "darkest")
    file = "pictures.json"
    data: PicturesData
    shape: tuple[Count, Count, Count]
    mean: float
    deviation: Positive
    darkest: float

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[Picture]:
        """The pictures of a split; none if the recipe names no file and no example."""
        data, names = recipe.settings(PicturesData), recipe.named(split)
        if not names and not recipe.named("train") and data.example == "digits":
            return digits(split)
        lines = Handling(on_bad_line=data.on_bad_line, bad_lines=bad_lines)
        pictures: list[Picture] = []
        for name in names:
            if name.is_dir() and any(child.is_dir() for child in name.iterdir()):
                pictures += read_picture_folder(name, size=data.size, **lines)
            else:
                for file in shards(name, split):
                    pictures += read_pictures(file, **lines)
        return pictures

    @classmethod
    def subject(cls, example: Picture) -> str:
        return repr(example)

    @classmethod
    def checked(cls, example: Picture) -> CheckedExample:
        pixels = repr(example.pixels.tolist())
        return CheckedExample((pixels,), (example.label or "",), example.where)

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[Picture]) -> "ImageClassification":
        """The task with the labels, the size and the brightness of the training pictures.

        DataError if pictures differ in size, are all of one colour, or have fewer than two labels.
        """
        shape = examples[0].pixels.shape
        for example in examples:
            example.check(shape, "as the first picture's")
        pixels = np.stack([example.pixels for example in examples]).astype(np.float64)
        deviation = float(pixels.std())
        if not deviation:
            raise DataError(
                f"data.train must hold pictures that show something; every pixel is "
                f"{pixels.flat[0]:g}."
            )
        brightness = {"mean": float(pixels.mean()), "darkest": float(pixels.min())}
        labels = learn_labels(example.label for example in examples)
        return cls(recipe, labels=labels, shape=shape, deviation=deviation, **brightness)

    @property
    def settings(self) -> VisionTransformerConfig:
        """The settings of the model."""
        return self.recipe.settings(VisionTransformerConfig)

    def build_model(self) -> nn.Module:
        rows, columns, channels = self.shape
        sizes = {"channels": channels, "num_classes": len(self.labels)}
        return VisionTransformer(self.settings, size=(rows, columns), **sizes)

    def describe(self) -> list[str]:
        (rows, columns, channels), patch = self.shape, self.settings.patch
        size = (
            f"{rows} × {columns} pixels of {channels} channels, read in patches of {patch} × "
            f"{patch}: {rows * columns // patch**2} of a picture"
        )
        return [size, *super().describe()]

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> Picture:
        """The picture that a JSON record holds, or ``test:3``: the third of a split, from 1.

        DataError if there is no such picture, or it is of another size than those of training.
        """
        if isinstance(record, str) and (match := _OF_SPLIT.fullmatch(record.strip())):
            split, number = match[1], int(match[2])
            pictures = self.read(self.recipe, split)
            if not 1 <= number <= len(pictures):
                raise DataError(
                    f"{where}: {record.strip()} must be one of the {len(pictures)} pictures of "
                    f"{split}, counted from 1."
                )
            return pictures[number - 1]
        if isinstance(record, str):
            if not record.lstrip().startswith("{"):
                raise DataError(
                    f'{where}: expected a picture, as {{"pixels": [[0, 1], [1, 0]]}} or as test:1'
                    f", the first of the run's test part; found {record[:60]!r}."
                )
            record = object_of(record, where)
        picture = picture_of(record, where)
        picture.check(self.shape, "as in training")
        return picture

    def open(self, file: Path) -> dict[str, JsonValue]:
        """A picture file as a record, scaled as those of training."""
        pixels = read_pixels(file, size=self.data.size, channels=self.shape[2])
        return {"pixels": pixels.tolist()}

    def encode_one(self, example: Picture, too_long: BadLines) -> Sample:
        """The pixels, scaled, channels first; the label's number."""
        example.check(self.shape, "as in training")
        scaled = torch.from_numpy((example.pixels - self.mean) / self.deviation)
        return {"pixels": scaled.float().movedim(-1, 0), "label": self.number(example)}

    def length(self, sample: Sample) -> int:
        rows, columns, _ = self.shape
        return rows * columns // self.settings.patch**2

    def noisy(self, batch: Batch, generator: torch.Generator) -> Batch:
        """The pictures moved by up to ``data.shift`` pixels."""
        if not self.data.shift:
            return batch
        dark = (self.darkest - self.mean) / self.deviation
        pixels = shifted(batch["pixels"], self.data.shift, fill=dark, generator=generator)
        return {**batch, "pixels": pixels}

    def logits(self, model: nn.Module, batch: Batch) -> Logits:
        return model(batch["pixels"]).float(), None

    def more_baselines(
        self, train: Sequence[Picture], examples: Sequence[Picture]
    ) -> dict[str, list[str]]:
        """The label of the nearest mean picture, and of the nearest picture."""
        train_pixels, pixels = (
            torch.tensor(np.stack([example.pixels.ravel() for example in pictures]))
            for pictures in (train, examples)
        )
        labels = [example.label or "" for example in train]
        names = sorted(set(labels))
        rows = {name: [at for at, label in enumerate(labels) if label == name] for name in names}
        means = torch.stack([train_pixels[rows[name]].mean(0) for name in names])
        by_mean = torch.cdist(pixels, means).argmin(-1).tolist()
        by_picture = torch.cdist(pixels, train_pixels).argmin(-1).tolist()
        return {
            "nearest mean": [names[at] for at in by_mean],
            "nearest picture": [labels[at] for at in by_picture],
        }

    def draw(
        self, model: nn.Module, example: Picture, encoded: Sample, answer: LabelPrediction
    ) -> Drawing:
        """The image in its patches, the class token before them, and the attention to each."""
        has_first = self.settings.pooling == "first"
        low, high = min(self.darkest, example.pixels.min()), example.pixels.max()
        shares = (example.pixels - low) / max(high - low, 1e-9)
        if shares.shape[-1] != 3:
            shares = shares.mean(-1, keepdims=True)  # of other channels, grey
        patch = self.settings.patch
        image, names = in_patches(shares, (patch, patch), before=int(has_first))
        return Drawing(
            text=words_text([*[CLASS] * has_first, *names]),
            output=words_text([answer.label]),
            prediction=self.prediction(answer),
            shade=Shade(
                kind="encoder",
                layer=None,
                query=0 if has_first else None,
                measure=patch_measure(has_class=has_first),
            ),
            image=image,
            label=example.where,
        )

    def brief(self, example: Picture) -> str:
        """The file and the number of a picture."""
        return example.where


def patch_measure(*, has_class: bool) -> str:
    """Name the attention that shades the patches of a picture."""
    subject = "the class token looks" if has_class else "they all look"
    return f"the more {subject} at it in the last layer, its heads' mean"


def digits(split: str) -> list[Picture]:
    """A part of scikit-learn's handwritten digits; the test's hands are others than training's."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise SettingError(
            'data.example = "digits" must have scikit-learn; it is not installed. Run: pip install '
            '"regard[vision]". Or name files of pictures: data.train.'
        ) from None
    dataset = load_digits()
    first, last = _DIGITS
    part = {"train": slice(first), "valid": slice(first, last), "test": slice(last, None)}[split]
    return [
        Picture(pixels.astype(np.float32)[..., None], str(label), f"digits {split}:{number}")
        for number, (pixels, label) in enumerate(
            zip(dataset.images[part], dataset.target[part], strict=True), 1
        )
    ]


def shifted(
    pixels: Float[Tensor, "B P Y X"], most: int, *, fill: float, generator: torch.Generator
) -> Float[Tensor, "B P Y X"]:
    """Each picture moved at random by up to ``most`` pixels; ``fill`` comes in at the edges."""
    rows, columns = pixels.shape[-2:]
    wide = F.pad(pixels, (most,) * 4, value=fill)
    moves = torch.randint(0, 2 * most + 1, (len(pixels), 2), generator=generator).tolist()
    return torch.stack(
        [
            picture[:, down : down + rows, right : right + columns]
            for picture, (down, right) in zip(wide, moves, strict=True)
        ]
    )
