"""Pictures to labels: reading, shifting in training, baselines."""

import json

import numpy as np
import pytest
import torch
from tests.looking import look_into

from regard.errors import DataError
from regard.inference import Predictor
from regard.tasks import TASKS, recipe_from_table
from regard.tasks.labels.image_classification import ImageClassification, digits
from regard.text.reading.pictures import Picture

MODEL = {"patch": 2, "model_dim": 8, "num_heads": 2, "num_layers": 1, "ffn_dim": 8}


def picture(value, label="a", shape=(4, 4, 1)):
    pixels = np.zeros(shape, dtype=np.float32)
    pixels[1, 2] = value
    return Picture(pixels, label, f"picture {value:g}")


def job(**data):
    table = {"task": "image_classification", "data": data, "model": MODEL}
    recipe = recipe_from_table({**table, "training": {"updates": 1}})
    return TASKS["image_classification"].task.learn(
        recipe, [picture(3, "a"), picture(5, "b"), picture(4, "a")]
    )


def test_pictures_are_moved_in_training_only():
    task = job(shift=1)
    encoded = task.encode([picture(3), picture(4), picture(5)])
    still = task.collate(encoded)["pixels"]
    torch.testing.assert_close(still, torch.stack([each["pixels"] for each in encoded]))
    moved = task.collate(encoded, generator=torch.Generator().manual_seed(1))["pixels"]
    assert not torch.equal(moved, still)
    unmoved = job().collate(encoded, generator=torch.Generator().manual_seed(1))["pixels"]
    torch.testing.assert_close(unmoved, still)


def test_baselines_are_those_of_their_names():
    train = [picture(1, "low"), picture(2, "low"), picture(9, "high")]
    inputs = [picture(1.4, "low"), picture(7, "high"), picture(5.4, "low")]
    predictions = job().baselines(train, inputs)
    labels = {name: [answer.label for answer in answers] for name, answers in predictions.items()}
    assert labels == {
        "always low": ["low"] * 3,
        "nearest mean": ["low", "high", "high"],  # means of 1.5 and 9
        "nearest picture": ["low", "high", "low"],  # 5.4 is nearer to 2 than to 9
    }


def test_a_picture_of_a_split_is_requested_by_number():
    pytest.importorskip("sklearn")
    table = {"task": "image_classification", "data": {"example": "digits"}, "model": MODEL}
    recipe = recipe_from_table({**table, "training": {"updates": 1}})
    task = ImageClassification.learn(recipe, digits("train"))
    example = task.request("test:3", "stdin:1")
    np.testing.assert_array_equal(example.pixels, digits("test")[2].pixels)
    message = "stdin:1: test:301 must be one of the 300 pictures of test, counted from 1"
    with pytest.raises(DataError, match=message):
        task.request("test:301", "stdin:1")


def test_a_record_is_a_picture():
    record = {"pixels": picture(2).pixels[..., 0].tolist()}
    for request in (record, json.dumps(record)):
        np.testing.assert_array_equal(job().request(request, "here").pixels, picture(2).pixels)
    with pytest.raises(DataError, match=r"here: pixels must be 4 × 4 × 1 .* got 4 × 5 × 1"):
        job().request({"pixels": [[0] * 5] * 4}, "here")
    with pytest.raises(DataError, match=r"pixels must be 4 × 4 × 1 .* got 2 × 4 × 1"):
        ImageClassification.learn(job().recipe, [picture(1), picture(1, shape=(2, 4, 1))])
    with pytest.raises(DataError, match="pictures that show something; every pixel is 0"):
        ImageClassification.learn(job().recipe, [picture(0, "a"), picture(0, "b")])


def test_a_folder_of_pictures_is_learned_from_and_a_file_is_classified(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for index, label in enumerate(("dark", "light")):
        (tmp_path / label).mkdir()
        pixels = np.full((5 + index, 6, 3), 200 * index, np.uint8)
        image.fromarray(pixels).save(tmp_path / label / "a.png")
    data = {"train": [str(tmp_path)], "size": 4}
    recipe = recipe_from_table({"task": "image_classification", "data": data, "model": MODEL})
    task = ImageClassification.learn(recipe, ImageClassification.read(recipe, "train"))
    assert (task.labels, task.shape) == (["dark", "light"], (4, 4, 3))
    files = [tmp_path / "light" / "a.png", np.full((4, 4, 3), 200)]
    predictor = Predictor(task.build_model(), task)
    from_file, from_array = predictor.predict(files)
    assert from_file.to_dict() == from_array.to_dict()
    (example,) = look_into(predictor, files[0]).examples
    assert (example.label, example.output) == (str(files[0]), from_file.label)
    assert example.maps
