"""The encoded text that a run keeps: never needed, never wrong, and no second encoding."""

import errno
import json
import os
import re
import shutil

import numpy as np
import pytest

from regard.errors import Interrupted, RunError
from regard.runs import Run, RunWarning, files
from regard.runs.files import seal
from regard.tasks import recipe_from_table, sequence_task
from regard.training import task_training
from regard.training.session import fit as train

SMALL = {"type": "rnn_seq2seq", "embed_dim": 8, "hidden_dim": 8, "attention_dim": 8}
NAMES = ("encoded.safetensors", "encoded.json")


@pytest.fixture
def make(tmp_path):
    """A maker of small recipes on 90 pairs of numbers, two of them too long."""
    rows = [f"{n * 7919}\t{n * 104729}\n" for n in range(1, 89)] + ["1" * 40 + "\t1\n"] * 2
    (tmp_path / "train.tsv").write_text("".join(rows), encoding="utf-8")
    (tmp_path / "valid.tsv").write_text("123\t321\n4567\t7654\n", encoding="utf-8")

    def recipe(tokenizer=None, **data):
        defaults = {"train": "train.tsv", "valid": "valid.tsv", "max_length": 20}
        table = {
            "data": {**defaults, "on_long": "skip", **data},
            "tokenizer": tokenizer or {"type": "characters"},
            "model": SMALL,
            "training": {"updates": 6, "batch_tokens": 120, "warmup": 3, "validation_pairs": 0}
            | {"validate_every": 6, "precision": "float32"},
            "decoding": {"max_ratio": 0.2},
        }
        return recipe_from_table(table, folder=tmp_path)

    return recipe


@pytest.fixture
def encodings(monkeypatch):
    """How many pairs were encoded, each time that some were."""
    counts = []
    encode = sequence_task.encode_corpus

    def counting(pairs, *args, **kwargs):
        counts.append(len(pairs))
        return encode(pairs, *args, **kwargs)

    monkeypatch.setattr(sequence_task, "encode_corpus", counting)
    return counts


def listening(toy, facts=None, after_update=None):
    recorder = toy.Recorder(after_update)
    if facts is not None:
        recorder.started = lambda told, **_: facts.extend(told)
    return recorder


def stop_at(update):
    def stop(made):
        if made == update:
            raise Interrupted("stopped")

    return stop


def batches_of(monkeypatch, toy, recipe, path):
    """Every batch of two epochs of the run, as a training that goes on sees them."""
    works = []
    build = task_training.TaskTraining.build_model

    def keep(self):
        works.append(self)
        return build(self)

    monkeypatch.setattr(task_training.TaskTraining, "build_model", keep)
    train(recipe, path, reporter=toy.Recorder())
    return [batch.padded for epoch in (0, 1) for batch, _ in works[-1].batches(epoch, 0)]


def test_a_resumed_training_encodes_nothing_and_says_the_same(toy, tmp_path, make, encodings):
    began, went_on = [], []
    with pytest.raises(Interrupted):
        train(make(), tmp_path / "run", reporter=listening(toy, began, stop_at(5)))
    assert encodings == [90, 2]
    train(make(), tmp_path / "run", reporter=listening(toy, went_on))
    assert encodings == [90, 2]
    assert any(fact.startswith("cut or left out 2 pairs too long: ") for fact in began)
    timed = re.compile(r", about [\w:. ]+(?=;)")  # a training that goes on makes no trial batches
    assert went_on == [timed.sub("", fact) for fact in began]


def test_a_resumed_training_ends_with_the_same_bytes(toy, tmp_path, make, encodings):
    train(make(), tmp_path / "whole", reporter=toy.Recorder())
    with pytest.raises(Interrupted):
        train(make(), tmp_path / "run", reporter=toy.Recorder(stop_at(5)))
    train(make(), tmp_path / "run", reporter=toy.Recorder())
    assert toy.contents(tmp_path / "run") == toy.contents(tmp_path / "whole")
    for name in NAMES:
        kept = (tmp_path / "run" / name).read_bytes()
        assert kept == (tmp_path / "whole" / name).read_bytes()


def test_batches_are_those_of_text_encoded_anew(monkeypatch, toy, tmp_path, make, encodings):
    fresh = batches_of(monkeypatch, toy, make(), tmp_path / "run")
    kept = batches_of(monkeypatch, toy, make(), tmp_path / "run")
    assert encodings == [90, 2]
    assert len(fresh) == len(kept) > 10
    for one, other in zip(fresh, kept, strict=True):
        for slot in type(one).__dataclass_fields__:
            np.testing.assert_array_equal(getattr(one, slot), getattr(other, slot))


def cut_in_half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


HARMS = {
    "cut": cut_in_half,
    "flipped": flip,
    "gone": os.remove,
    "empty": lambda p: p.write_text(""),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("harm", sorted(HARMS))
def test_a_damaged_one_is_made_anew(toy, tmp_path, make, encodings, name, harm):
    train(make(), tmp_path / "run", reporter=toy.Recorder())
    before = {each: (tmp_path / "run" / each).read_bytes() for each in NAMES}
    HARMS[harm](tmp_path / "run" / name)
    train(make(), tmp_path / "run", reporter=toy.Recorder())
    assert encodings == [90, 2, 90, 2]
    assert {each: (tmp_path / "run" / each).read_bytes() for each in NAMES} == before


@pytest.mark.parametrize(
    "other",
    [
        {"max_length": 19},
        {"valid": "train.tsv"},
        {"tokenizer": {"type": "words", "shared": False}},
    ],
    ids=["length", "text", "tokenizer"],
)
def test_one_of_another_run_is_made_anew(toy, tmp_path, make, encodings, other):
    train(make(), tmp_path / "run", reporter=toy.Recorder())
    whole = toy.contents(tmp_path / "run")
    train(make(**other), tmp_path / "other", reporter=toy.Recorder())
    for name in NAMES:
        shutil.copy(tmp_path / "other" / name, tmp_path / "run" / name)
    encodings.clear()
    train(make(), tmp_path / "run", reporter=toy.Recorder())
    assert encodings == [90, 2]
    assert toy.contents(tmp_path / "run") == whole


@pytest.mark.parametrize("key", ["regard", "format"])
def test_one_of_another_version_is_made_anew(toy, tmp_path, make, encodings, key):
    train(make(), tmp_path / "run", reporter=toy.Recorder())
    path = tmp_path / "run" / "encoded.json"
    about = json.loads(path.read_text(encoding="utf-8"))
    del about["sha256"]
    about["made_of"][key] = "0"
    path.write_bytes(seal(about))
    train(make(), tmp_path / "run", reporter=toy.Recorder())
    assert encodings == [90, 2, 90, 2]


def test_changed_text_is_refused_as_before(toy, tmp_path, make):
    train(make(), tmp_path / "run", reporter=toy.Recorder())
    with (tmp_path / "train.tsv").open("a", encoding="utf-8") as file:
        file.write("5\t5\n")
    with pytest.raises(RunError, match="its pairs have changed since"):
        train(make(), tmp_path / "run", reporter=toy.Recorder())


def test_a_tokenizer_that_draws_keeps_nothing(toy, tmp_path, make, encodings):
    recipe = make(tokenizer={"type": "bpe", "vocab_size": 290, "dropout": 0.3})
    train(recipe, tmp_path / "run", reporter=toy.Recorder())
    train(recipe, tmp_path / "run", reporter=toy.Recorder())
    assert encodings == [90, 2, 90, 2]
    assert not [name for name in NAMES if (tmp_path / "run" / name).exists()]


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_stops_no_training(monkeypatch, toy, tmp_path, make, name):
    train(make(), tmp_path / "whole", reporter=toy.Recorder())
    fill = files.fill_file

    def refuse(path, content):
        fill(path, content)
        if path.name.endswith(name):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "fill_file", refuse)
    with pytest.warns(RunWarning, match="The encoded text is not kept: .* Training goes on"):
        train(make(), tmp_path / "run", reporter=toy.Recorder())
    assert toy.contents(tmp_path / "run") == toy.contents(tmp_path / "whole")
    assert not [each for each in (tmp_path / "run").iterdir() if "encoded" in each.name]


def test_folders_in_their_place_stop_no_training(toy, tmp_path, make):
    train(make(), tmp_path / "run", reporter=toy.Recorder())
    for name in NAMES:
        (tmp_path / "run" / name).unlink()
        (tmp_path / "run" / name).mkdir()
    with pytest.warns(RunWarning, match="The encoded text is not kept"):
        train(make(), tmp_path / "run", reporter=toy.Recorder())
    assert Run.open(tmp_path / "run").is_finished
