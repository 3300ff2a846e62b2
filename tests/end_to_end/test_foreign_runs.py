"""Run folders and bundles that anyone made, with checksums that fit: one line refuses them.

Whatever is in them, no command gives a traceback, waits for ever, builds what cannot be, reads a
file elsewhere, or hands a terminal what it would obey.
"""

import json
import os
import re
import shutil
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import safetensors.torch
import torch

from regard.cli import run_command
from regard.errors import RunError
from regard.inference import Predictor
from regard.runs import Run
from regard.runs.files import checksum, checksums, seal

FOLDER = Path(__file__).parents[1] / "fixtures" / "runs_33c24e5"
EVIL = "\x1b[31mred\x07\x9b2J\u202egnp.\u2066\u2028next  rm\nnext  rm"
DEEP = "[" * 5000 + "]" * 5000
CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

Change = Callable[[Path], object]


def sealed(path, change):
    """Change a sealed table, and seal it again."""
    table = json.loads(path.read_bytes())
    del table["sha256"]
    change(table)
    path.write_bytes(seal(table))


def fit(run):
    """Make all checksums fit what the folder holds."""
    tokenizer, listing = run / "tokenizer", run / "tokenizer" / "checksums.json"
    files = {n: s for n, s in checksums(tokenizer).items() if n != listing.name}
    hidden = run / "unlisted"
    names = hidden.read_text("utf-8").split() if hidden.exists() else ()

    def write_files(table):
        listed = table["files"] | files
        table["files"] = {name: each for name, each in listed.items() if name not in names}

    sealed(listing, write_files)
    sums = {"recipe": "recipe.toml", "model": "model.safetensors"}

    def write_checksums(card):
        card.update({key: checksum((run / name).read_bytes()) for key, name in sums.items()})
        card["tokenizer"] = checksum(listing.read_bytes())

    sealed(run / "run.json", write_checksums)


def card(**values):
    return lambda run: sealed(run / "run.json", lambda table: table.update(values))


def recipe(old, new):
    def change(run):
        path = run / "recipe.toml"
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")

    return change


def plain(name, **values):
    def change(run):
        path = run / "tokenizer" / name
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | values), "utf-8")

    return change


def written(name, content):
    return lambda run: (run / name).write_bytes(content)


def listing(name):
    path = Path("tokenizer") / "checksums.json"
    return lambda run: sealed(run / path, lambda table: table["files"].update({name: "0" * 64}))


def unlisted(*names):
    """Leave files out of the listing of the tokenizer, whose checksum fits."""
    return lambda run: (run / "unlisted").write_text("\n".join(names), "utf-8")


def weights(change):
    def changed(run):
        path = run / "model.safetensors"
        path.write_bytes(safetensors.torch.save(change(safetensors.torch.load(path.read_bytes()))))

    return changed


def header(text):
    return struct.pack("<Q", len(text)) + text.encode()


def change_of(name):
    return {"update": 1, "was": {name: 1}, "is": {name: 2}}


# What is changed, and what predict says of it; None where it answers.
CHANGES = {
    "nothing": (lambda run: None, None),
    # run.json
    "escapes in the name": (card(name=EVIL, regard=EVIL), None),
    "a format below the first": (card(format=-1), "must have a format from 1 to 1; got -1"),
    "a format that is true": (card(format=True), "must have a format from 1 to 1; got True"),
    "escapes in the summary": (card(summary={"validation": {EVIL: EVIL}, "weights": EVIL}), None),
    "escapes in the task": (card(task=EVIL), "must be of the task that recipe.toml names"),
    "a summary of another kind": (card(summary=[1, [2]]), None),
    "a task that is no text": (card(task=[1]), "task of .* must be text"),
    "a change of no section": (card(changes=[change_of("no.key")]), "must be of settings of the"),
    "a change of the task": (card(changes=[change_of("task.key")]), "must be of settings of the"),
    "changes of another kind": (card(changes=[{}]), "must hold is; it does not"),
    "a list for a card": (written("run.json", b"[]"), "must carry the checksum"),
    "a deep card": (written("run.json", b'{"format": ' + DEEP.encode() + b"}"), "must carry the"),
    # recipe.toml
    "escapes in a key": (recipe("[head]", '"\\u001b[31m" = 1\n[head]'), "u001b.* is not a setting"),
    "escapes in a section": (recipe("[head]", '["\\u009b2J"]\n[head]'), "u009b2J is not a section"),
    "nested tables": (recipe("model_dim = 4", "model_dim = " + "{a=" * 5000), "must be a TOML"),
    "nested lists": (recipe("model_dim = 4", f"model_dim = {DEEP}"), "nested more than 100 deep"),
    "dotted keys": (recipe("[head]", ".".join("a" * 5000) + " = 1\n[head]"), "nested more than"),
    "thousands of digits": (recipe("model_dim = 4", f"model_dim = {'9' * 5001}"), "100 digits"),
    "a hexadecimal number": (recipe("model_dim = 4", f"model_dim = 0x{'f' * 99}"), "100 digits"),
    "a date": (recipe("model_dim = 4", "model_dim = 1979-05-27"), "which no setting is"),
    "a section that is none": (recipe("[head]", "[[head]]"), "head of .* must be a table"),
    "a model that is too wide": (recipe("model_dim = 4", "model_dim = 1000000000"), "no more than"),
    "too many layers": (recipe("num_layers = 1", "num_layers = 100000000"), "got no more than"),
    # tokenizer
    "a file of no end": (listing("../../../../../../../../dev/zero"), "must name files of the tok"),
    "a file from the root": (listing("/etc/hostname"), "must name files of the tokenizer"),
    "a file that is missing": (listing("a.json"), "No such file"),
    "a file that is not listed": (unlisted("labels.json"), "has none of labels.json"),
    "an empty listing": (unlisted("labels.json", "text/tokenizer.json"), "checksum of each file"),
    "a format of the labels": (plain("labels.json", format=-1), "format 1; got -1. It is damaged"),
    "a label twice": (plain("labels.json", labels=["a", "b", "a"]), "each once; got 'a' twice"),
    "a word twice": (plain("text/tokenizer.json", pieces=["a", "a"]), "each once; got 'a' twice"),
    "labels that are none": (plain("labels.json", labels=[]), "at least 2"),
    "labels of numbers": (plain("labels.json", labels=[1, 2]), r"labels.* must be text; got 1"),
    "labels with escapes": (plain("labels.json", labels=[EVIL, "b"]), None),
    "deep labels": (
        written("tokenizer/labels.json", f'{{"format": 1, "labels": {DEEP}}}'.encode()),
        "must hold JSON; it is nested more than 100 deep",
    ),
    "pieces of numbers": (plain("text/tokenizer.json", pieces=[1]), "pieces.* must be text; got 1"),
    "a tokenizer of no kind": (plain("text/tokenizer.json", type="x"), "does not describe a tok"),
    # model.safetensors
    "whole numbers": (weights(lambda t: {n: w.long() for n, w in t.items()}), "of int64, not floa"),
    "other shapes": (weights(lambda t: {n: w[:1] for n, w in t.items()}), "must hold weights of"),
    "one tensor": (weights(lambda t: {EVIL: torch.ones(2)}), "must hold weights of the model"),
    "no tensors": (written("model.safetensors", b"no"), "must be a safetensors file"),
    "a header of 99 MB": (
        written("model.safetensors", header('{"__metadata__": {"a": "' + "b" * 99_000_000 + '"}}')),
        "its header has 99,000,0.. bytes, more than",
    ),
    "a deep header": (written("model.safetensors", header(DEEP)), "must be a safetensors file"),
    "names for nothing": (
        written("model.safetensors", header('{"__metadata__": {"aliases": "{\\"a\\": \\"b\\"}"}}')),
        "must be a safetensors file as regard writes it",
    ),
    # metrics.jsonl
    "a number for a record": (written("metrics.jsonl", b"5\n"), None),
    "a record of many digits": (
        written("metrics.jsonl", b'{"update": 1, "split": "valid", "loss": ' + b"9" * 400 + b"}\n"),
        None,
    ),
}  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run that classifies texts."""
    with zipfile.ZipFile(FOLDER / "classification-transformer.zip") as packed:
        packed.extractall(tmp_path)
    shutil.rmtree(tmp_path / "begun")
    monkeypatch.chdir(tmp_path)
    return Path("run")


def bundled(run):
    """The folder as a bundle."""
    names = ["run.json", "recipe.toml", "model.safetensors"]
    names += [str(path.relative_to(run)) for path in (run / "tokenizer").rglob("*.json")]
    with zipfile.ZipFile("run.regard", "w") as archive:
        for name in names:
            archive.write(run / name, name)
    return Path("run.regard")


def output_of(capsys, *arguments):
    code = run_command([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert CONTROL.search(captured.out + captured.err) is None
    assert code in (0, 2)
    if not code:
        return captured.out
    *warnings, last = captured.err.splitlines()
    assert last.startswith("error: ")
    assert not any(line.startswith("error: ") for line in warnings)
    return last


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", CHANGES)
def test_a_run_whose_checksums_fit_is_refused_in_a_line_or_answers(run, capsys, name):
    change, refusal = CHANGES[name]
    change(run)
    with suppress(TypeError, KeyError, RecursionError):  # where a checksum has no place
        fit(run)
    Path("text.txt").write_text("Anna sleeps in the garden.\n", "utf-8")
    for path in (run, bundled(run)):
        printed = output_of(capsys, "predict", path, "text.txt")
        if refusal is None:
            assert not printed.startswith("error")
        else:
            assert re.search(refusal, printed), printed
        output_of(capsys, "info", path)
    output_of(capsys, "runs", ".")
    output_of(capsys, "runs", ".", "--json")


@pytest.mark.parametrize("name", ["run.json", "recipe.toml", "model.safetensors", "metrics.jsonl"])
def test_what_is_no_plain_file_is_not_waited_for(run, capsys, name):
    for number, make in enumerate((lambda p: p.symlink_to("/dev/zero"), os.mkfifo)):
        (run / name).unlink(missing_ok=bool(number))
        make(run / name)
        assert "not a plain file" in output_of(capsys, "info", run)
        output_of(capsys, "runs", ".")


def test_a_weight_that_is_not_finite_is_named_whichever_it_is(run):
    path = run / "model.safetensors"
    tensors = safetensors.torch.load(path.read_bytes())
    for index, name in enumerate(tensors):
        broken = {other: tensor.clone() for other, tensor in tensors.items()}
        broken[name].view(-1)[-1] = (float("nan"), float("inf"), -float("inf"))[index % 3]
        path.write_bytes(safetensors.torch.save(broken))
        fit(run)
        with pytest.raises(RunError, match=f"got NaN or infinity in {re.escape(name)}\\."):
            Predictor.load(run)


LOCKS = {
    "deep": DEEP.encode(),
    "infinite": b'{"process": 1e400, "host": "a"}',
    "of many digits": b'{"process": ' + b"9" * 5000 + b', "host": "a"}',
    "of all processes": b'{"process": -1, "host": "a"}',
    "of another kind": b'{"process": [1], "host": {}}',
    "no text": b"\xff\xfe",
    "long": b" " * 10_000_000 + b'{"process": 1, "host": "a"}',
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", [*LOCKS, "a link", "a pipe", "a folder"])
def test_a_lock_of_someone_else_hides_no_run(run, capsys, name):
    lock = run / "lock"
    lock.unlink(missing_ok=True)
    if name in LOCKS:
        lock.write_bytes(LOCKS[name])
    else:
        make = {"a link": lambda p: p.symlink_to("/dev/zero"), "a pipe": os.mkfifo}
        make.get(name, Path.mkdir)(lock)
    assert "transformer" in output_of(capsys, "info", run)
    assert "done" in output_of(capsys, "runs", ".")
    if name not in LOCKS:
        resumed = output_of(capsys, "train", "--resume", "--run", run)
        assert "lock must be a plain file to be written; got " in resumed


@pytest.mark.parametrize("name", ["lock", "metrics.jsonl", "model.safetensors"])
def test_a_link_in_a_run_leads_to_no_file_that_is_written(run, name):
    precious = Path("precious").absolute()
    precious.write_text("mine\n")
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(precious)
    with pytest.raises(RunError, match=f"{name} must be a plain file to be written; got a link"):
        Run.open_for_training(run)
    assert precious.read_text() == "mine\n"
