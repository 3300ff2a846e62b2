"""Vision models of transformers and picture files in, pages out."""

import numpy as np
import pytest
import torch
from tests.unit.interop.tiny_folders import GRID, save_bert, save_vision

import regard
from regard.cli.look import look as look_command
from regard.cli.options import LookFlags
from regard.errors import DataError, RegardError, SettingError
from regard.inference.checkpoint import Checkpoint
from regard.interop.checkpoints.folder import load_folder

transformers = pytest.importorskip("transformers")
pillow = pytest.importorskip("PIL.Image")

HEIGHT, WIDTH = GRID["image_size"]
PATCHES = ["1,1", "1,2", "1,3", "2,1", "2,2", "2,3"]


@pytest.fixture(scope="module")
def vit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vit")
    save_vision(folder, "ViTForImageClassification", id2label={0: "cat", 1: "dog", 2: "猫"})
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    save_bert(folder)
    return folder


@pytest.fixture
def picture(tmp_path):
    pixels = np.random.default_rng(3).integers(0, 256, (13, 17, 3), dtype=np.uint8)
    path = tmp_path / "cat.png"
    pillow.fromarray(pixels).save(path)
    return path


def eager(folder, kind, picture):
    """Inputs of a picture, and what the model makes of them by its own attention."""
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    model = getattr(transformers, kind).from_pretrained(folder, attn_implementation="eager").eval()
    with pillow.open(picture) as opened, torch.no_grad():
        inputs = processor(opened.convert("RGB"), return_tensors="pt")["pixel_values"]
        return inputs, model(inputs, output_attentions=True)


@pytest.mark.parametrize(
    ("kind", "before"),
    [
        ("ViTForImageClassification", ["⟨class⟩"]),
        ("ViTModel", ["⟨class⟩"]),
        ("DeiTForImageClassification", ["⟨class⟩", "[DIST]"]),
        ("DeiTForImageClassificationWithTeacher", ["⟨class⟩", "[DIST]"]),
        ("BeitForImageClassification", ["⟨class⟩"]),
    ],
)
def test_a_page_has_the_patches_and_the_weights_of_the_model(kind, before, picture, tmp_path):
    save_vision(tmp_path, kind)
    (example,) = regard.look(*load_folder(tmp_path), picture).document.examples
    inputs, expected = eager(tmp_path, kind, picture)
    assert [token.text for token in example.source_tokens] == [*before, *PATCHES]
    boxes = [(y, x, 2, 2) for y in range(0, HEIGHT, 2) for x in range(0, WIDTH, 2)]
    assert example.image.boxes == (*[None] * len(before), *boxes)
    shown = torch.tensor(example.image.pixels).movedim(-1, 0)
    torch.testing.assert_close(shown, inputs[0] * 0.5 + 0.5, atol=1e-3, rtol=1e-3)
    for summary, weights in zip(example.summaries, expected.attentions, strict=True):
        rows = torch.tensor(summary.rows.values())
        torch.testing.assert_close(rows, weights[0].double(), atol=2e-3, rtol=2e-3)
    shade = torch.tensor(example.answer.values)
    torch.testing.assert_close(shade, expected.attentions[-1][0, :, 0].mean(0), atol=1e-3, rtol=0)
    assert bool(example.answer.labels) == ("logits" in expected)


def test_the_likeliest_classes_stand_first(vit, picture):
    look = regard.look(*load_folder(vit), [str(picture), picture], heads=[0])
    first, second = look.document.examples
    shares = eager(vit, "ViTForImageClassification", picture)[1].logits[0].softmax(-1)
    expected = dict(zip(["cat", "dog", "猫"], shares.tolist(), strict=True))
    assert dict(first.answer.labels) == pytest.approx(expected, abs=1e-3)
    assert first.answer.labels[0][0] == max(expected, key=expected.get)
    assert first.label == second.label == "cat.png"
    assert first.answer.values == ()  # which are the mean of all heads


def test_the_command_takes_picture_files(vit, picture, tmp_path, capsys):
    look_command(str(vit), str(picture), out=tmp_path / "page.html")
    assert "the class token looks at it in the last layer" in capsys.readouterr().out
    assert "cat.png" in (tmp_path / "page.html").read_text()


def test_inputs_of_another_kind_are_named(vit, bert, picture, tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("the cat sat")
    broken = tmp_path / "broken.png"
    broken.write_text("no picture")
    out = tmp_path / "page.html"
    with pytest.raises(DataError, match=r"which reads pictures; got 'the cat sat', which is no fi"):
        look_command(str(vit), str(text), out=out)
    with pytest.raises(DataError, match=r"picture must be a file .* got 'x{59}…', which is no fi"):
        look_command(str(vit), "x" * 5000, out=out)
    with pytest.raises(DataError, match=r"broken\.png must be a picture that Pillow opens"):
        look_command(str(vit), str(broken), out=out)
    with pytest.raises(DataError, match=r"text must be a text for BertModel; got the file .*cat\."):
        look_command(str(bert), str(picture), out=out)
    with pytest.raises(SettingError, match=r"pair and truncate are for texts; got one for Vi"):
        look_command(str(vit), str(picture), str(picture), pair=True, out=out)
    with pytest.raises(SettingError, match=r"target, .* are for texts; got one for ViTFor"):
        look_command(str(vit), str(picture), looked=LookFlags(target="cat"), out=out)
    with pytest.raises(SettingError, match=r"must read text to be served; got ViTFor"):
        Checkpoint.load(vit).check_served(vit)


def test_a_folder_without_the_sizes_of_its_pictures_is_named(picture, tmp_path):
    save_vision(tmp_path, "ViTModel")
    sizes = tmp_path / "preprocessor_config.json"
    sizes.write_text(sizes.read_text().replace('"height": 4', '"height": 8'))
    with pytest.raises(DataError, match=r"cat\.png must become pixels .* The sizes in preprocess"):
        regard.look(*load_folder(tmp_path), picture)
    sizes.unlink()
    with pytest.raises(DataError, match=r"sizes of the model's pictures; got no preprocessor_conf"):
        load_folder(tmp_path)


def test_pillow_is_asked_for(vit, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(SettingError, match=r"Pillow must be installed .* pip install pillow"):
        load_folder(vit)


def test_models_that_attend_within_windows_are_named(picture):
    sizes = {"image_size": 8, "patch_size": 1, "embed_dim": 6, "depths": [1], "num_heads": [2]}
    model = transformers.SwinModel(transformers.SwinConfig(**sizes, window_size=4))
    processor = transformers.ViTImageProcessor(size={"height": 8, "width": 8})
    with pytest.raises(RegardError, match=r"between all 64 patches .* got 16 tokens in SwinModel"):
        regard.look(model, processor, picture)
