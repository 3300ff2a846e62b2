"""Label tasks: what is declared is read, requested, saved and checked; samples are padded."""

import json

import pytest
import torch

from regard.errors import DataError, RunError
from regard.tasks import LabelField, LabelledData, LabelTask, Recipe, TextField
from regard.tasks.batches import collate
from regard.text import PAD_ID, UNK_ID, TokenizerConfig, train_tokenizer


class Lengths(LabelTask):
    """Texts to whether they are long."""

    def build_model(self):
        return torch.nn.Linear(1, len(self.labels))

    def encode_one(self, example, too_long):
        return {"size": [float(len(example.text))], "label": self.number(example)}

    def logits(self, model, batch):
        return model(batch["size"]), None


def learned(folder, text="a\tshort\n a  long  one \tlong \n", name="a.tsv"):
    (folder / name).write_text(text, "utf-8")
    recipe = Recipe(data=LabelledData(train=str(folder / name)), tokenizer=None)
    return Lengths.learn(recipe, Lengths.read(recipe, "train"))


def test_columns_and_keys_are_those_of_the_fields(tmp_path):
    task = learned(tmp_path)
    first, second = task.read(task.recipe, "train")
    assert (first.text, first.label) == ("a", "short")
    assert (second.text, second.label, second.where[-2:]) == ("a long one", "long", ":2")
    assert [field.name for field in task.input_fields()] == ["text"]
    line = json.dumps({"content": "b", "class": "short"})
    other = learned(tmp_path, f"{line}\n{line.replace('short', 'long')}\n", "a.jsonl")
    assert other.labels == ["long", "short"]


def test_a_request_holds_every_text_and_no_label(tmp_path):
    task = learned(tmp_path)
    assert task.request(" b\tc ", "x:1").text == "b c"
    assert task.request({"content": "b"}, "x:1").label is None
    for record in ("", {"text": 3}, {}):
        with pytest.raises(DataError, match="x:1: text must hold something to read; got"):
            task.request(record, "x:1")


def test_a_text_of_known_pieces_takes_no_list_of_the_vocabulary(tmp_path, monkeypatch):
    task, listed = learned(tmp_path), []
    task.tokenizer = pieces = train_tokenizer(["a long one"], TokenizerConfig(type="characters"))
    monkeypatch.setattr(type(pieces), "names", property(lambda self: listed.append(self) or []))
    example = task.request("a fox", "x:1")
    assert task.unknown(example, [{"ids": pieces.encode("a no")}]) == []
    assert not listed
    assert task.unknown(example, [{"ids": [UNK_ID]}]) == ["f", "x"]


def test_what_is_learned_is_saved_and_a_damaged_file_is_named(tmp_path):
    task = learned(tmp_path)
    task.save(tmp_path)
    again = Lengths.load(task.recipe, tmp_path)
    assert again.labels == task.labels
    assert again.describe() == ["2 labels: long, short"]
    (tmp_path / "labels.json").write_text('{"format": 1, "labels": ["one"]}', "utf-8")
    with pytest.raises(RunError, match=r"labels of .*labels\.json must .* It is damaged"):
        Lengths.load(task.recipe, tmp_path)


def test_samples_are_padded_by_what_they_hold():
    batch = collate(
        [
            {"ids": [7, 8], "tags": [1, 1], "parts": torch.ones(2, 3, dtype=torch.int32), "x": "a"},
            {"ids": [9], "tags": [1], "parts": torch.ones(5, 1, dtype=torch.int32), "x": "b"},
        ],
        {"tags": -1},
    )
    assert batch["ids"].tolist() == [[7, 8], [9, PAD_ID]]
    assert (batch["lengths"].tolist(), batch["tags"].tolist()) == ([2, 1], [[1, 1], [1, -1]])
    assert batch["parts"].sum(2).tolist() == [[3, 3, 0, 0, 0], [1, 1, 1, 1, 1]]
    assert batch["x"] == ["a", "b"]


class Stars(LabelField):
    """A number as one of two labels."""

    def read(self, cell):
        if not cell.isdecimal():
            raise DataError(f"label must be a number; got {cell!r}.")
        return "good" if int(cell) > 3 else "bad"


def test_a_field_of_one_s_own_makes_labels_of_cells_and_names_the_line_of_a_bad_one(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(Lengths, "fields", {"text": TextField(), "label": Stars()})
    assert learned(tmp_path, "a\t1\nb\t5\n").labels == ["bad", "good"]
    with pytest.raises(DataError, match=r"a\.tsv:2: label must be a number; got 'x'"):
        learned(tmp_path, "a\t1\nb\tx\n")
