"""Pictures as lines of JSON."""

import json

import numpy as np
import pytest

from regard.errors import DataError
from regard.text import BadLines
from regard.text.reading.pictures import picture_of, read_picture_folder, read_pictures

GREY = {"pixels": [[0, 1, 2], [3, 4, 5]], "label": "a"}
COLOUR = {"pixels": [[[0, 1, 2]], [[3, 4, 5]]], "label": 7}


def test_grey_and_colour_are_read_all_of_one_size(write):
    path = write("pictures.jsonl", f"{json.dumps(GREY)}\nno picture\n")
    left_out = BadLines()
    (grey,) = read_pictures(path, on_bad_line="skip", bad_lines=left_out)
    assert (grey.label, grey.where, left_out.total) == ("a", f"{path}:1", 1)
    np.testing.assert_array_equal(grey.pixels, np.arange(6).reshape(2, 3, 1))
    (colour,) = read_pictures(write("colour.jsonl", json.dumps(COLOUR)))
    assert colour.label == "7"
    np.testing.assert_array_equal(colour.pixels, np.arange(6).reshape(2, 1, 3))
    path = write("pictures.jsonl", f"{json.dumps(GREY)}\n{json.dumps(COLOUR)}\n")
    with pytest.raises(DataError, match=r":2: pixels must be 2 × 3 × 1 .*; got 2 × 1 × 3"):
        list(read_pictures(path))


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        ("bright", "pixels must be rows .* got str bright"),
        ([], "pixels must be rows .* got none"),
        ([[]], "pixels must be rows"),
        ([[1], [1, 2]], "got a row of 2 and one of 1"),
        ([[1, "x"]], "pixels must be rows"),
        ([[1, None]], "pixels must be rows"),
        ([[1, [2]]], "pixels must be rows"),
        ([[float("nan")]], "all finite"),
        ([[1e99]], "all finite"),
        ([[[[1]]]], "pixels must be rows"),
    ],
)
def test_pixels_that_are_none(pixels, message):
    with pytest.raises(DataError, match=f"here: .*{message}"):
        picture_of({"pixels": pixels}, "here")


def test_pictures_differ_by_every_pixel():
    pixels = np.zeros((60, 60)).tolist()
    same, other = (picture_of({"pixels": pixels}, where) for where in ("here", "there"))
    assert repr(same) == repr(other)
    pixels[30][30] = 1.0
    assert repr(picture_of({"pixels": pixels}, "here")) != repr(same)


@pytest.fixture
def photos(tmp_path):
    """A folder of two labels, whose pictures differ in size and one in its channels."""
    image = pytest.importorskip("PIL.Image")
    shapes = {"cat/a.png": (2, 3, 3), "cat/b.jpg": (4, 4, 3), "dog/c.PNG": (2, 3)}
    for name, shape in shapes.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        image.fromarray(np.full(shape, 100, np.uint8)).save(tmp_path / name)
    (tmp_path / "dog" / "notes.txt").write_text("no picture", "utf-8")
    return tmp_path


def test_a_folder_of_pictures_is_read_its_folders_being_labels(photos):
    pictures = list(read_picture_folder(photos, size=2))
    assert [(each.label, each.where) for each in pictures] == [
        ("cat", str(photos / "cat" / "a.png")),
        ("cat", str(photos / "cat" / "b.jpg")),
        ("dog", str(photos / "dog" / "c.PNG")),
    ]
    for each in pictures:
        np.testing.assert_allclose(each.pixels, np.full((2, 2, 3), 100), atol=1)


def test_pictures_of_a_folder_that_cannot_be_used_are_named(photos):
    message = r"b\.jpg: pixels must be 2 × 3 × 3 .*data\.size scales all"
    with pytest.raises(DataError, match=message):
        list(read_picture_folder(photos))
    (photos / "cat" / "broken.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"broken\.png must be a picture that Pillow opens"):
        list(read_picture_folder(photos, size=2))
    left_out = BadLines()
    pictures = list(read_picture_folder(photos, size=2, on_bad_line="skip", bad_lines=left_out))
    assert (len(pictures), left_out.total) == (3, 1)
    with pytest.raises(DataError, match="must hold a folder of picture files for each label"):
        list(read_picture_folder(photos / "none"))
