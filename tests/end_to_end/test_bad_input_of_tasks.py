import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.tiny_tasks import TINY, TRAINING

from regard.config import write_toml
from regard.runs.files import checksum, seal, unseal
from regard.tasks import TASKS

pytestmark = pytest.mark.slow

# One task that reads columns, one that reads JSON, one that reads sentences of words: what holds of
# any task is tried with these.
SOME = ("classification", "question_answering", "tagging")
RECORD = 7  # the one that is spoiled, from 0
Spoil = Callable[[str], str | bytes]


def instead(old: str, new: str) -> Spoil:
    """One thing written otherwise, where it stands first."""

    def spoil(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return spoil


def in_line(old: str, new: str) -> Spoil:
    """One thing written otherwise in the line after the seventh."""

    def spoil(text: str) -> str:
        lines = text.splitlines(keepends=True)
        lines[RECORD] = instead(old, new)(lines[RECORD])  # type: ignore[assignment]
        return "".join(lines)

    return spoil


def in_latin(text: str) -> bytes:
    """The text with a French comment in it, as many older files have it."""
    return text.encode() + "Anna est allée au jardin.\n".encode("cp1252")


EMPTY = r"FILE must hold [a-z ,]+; got (none|an empty file)"
ENCODING = (
    r"FILE:\d+: not UTF-8 \(byte 0xE9 at place 13\)\. Say what it is in, --encoding NAME, or "
    r"convert it, which reads 'Anna est allée au ja' in WINDOWS-1252: iconv -f WINDOWS-1252 -t "
    r"UTF-8 FILE > utf8-"
)
# What a task's own file is read for is in the unit tests of its room; these go through commands.
SPOILED: list[tuple[str, str, Spoil, str]] = [
    *(("empty", task, lambda text: "", EMPTY) for task in SOME),
    *(("encoding", task, in_latin, ENCODING) for task in SOME),
    (
        "column",
        "classification",
        in_line("\tbad", ""),
        r"FILE:8: expected 2 columns, found 1. It should hold text in column 1, label in column 2",
    ),
    ("label", "classification", in_line("bad", " "), "FILE:8: the label is empty. Fill it in, or"),
    (
        "label",
        "image_classification",
        in_line('"below"', "null"),
        "FILE:8: label must be text; got None",
    ),
    (
        "column",
        "question_answering",
        instead('"question"', '"other"'),
        r"FILE:10: question q0: question must be text; got none. A question needs",
    ),
    ("comma", "regression", in_line("0.857", '"1,857"'), r"FILE:8: area .*'1,857'. Write 1857 or"),
    (
        "word",
        "tagging",
        in_line("hours\t", "\t"),
        "FILE:8: the word is empty. Fill it in, or leave",
    ),
]


def recipe(home: Path, task: str, **sections: dict[str, Any]) -> Path:
    """The recipe of a task in small, written beside its text."""
    table = {name: dict(section) for name, section in TINY[task].table.items()}
    table.setdefault("data", {})["train"] = TINY[task].file
    table["training"] = dict(TRAINING)
    for name, settings in sections.items():
        table[name] = {**table.get(name, {}), **settings}
    path = home / "recipe.toml"
    path.write_text(write_toml({"task": task, **table}), "utf-8")
    return path


def put(home: Path, task: str, text: str | bytes | None = None, *, into: str = "") -> Path:
    """The text of a task in a file of its folder."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / f"{into}{TINY[task].file}"
    text = TINY[task].text(30) if text is None else text
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture(scope="module")
def trained(regard, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The run of a task, trained once; its file and its recipe are beside it."""
    folder = tmp_path_factory.mktemp("tasks")

    def train(task: str) -> Path:
        home = folder / task
        if not home.exists():
            put(home, task)
            valid = put(home, task, TINY[task].text(8, 40), into="test-").name
            written = recipe(home, task, data={"valid": valid, "test": valid})
            done = regard("train", written, "--run", home / "run")
            assert done.code == 0, done
        return home

    return train


def test_the_table_has_every_task() -> None:
    assert set(TINY) == set(TASKS)


@pytest.mark.parametrize(
    ("task", "spoil", "message"),
    [pytest.param(*case[1:], id=f"{case[1]}-{case[0]}") for case in SPOILED],
)
def test_text_that_cannot_be_used(
    regard, trained, tmp_path: Path, task: str, spoil: Spoil, message: str
) -> None:
    file = put(tmp_path, task, spoil(TINY[task].text(30)))
    wanted = message.replace("FILE", re.escape(str(file)))
    valid = put(tmp_path, task, TINY[task].text(8, 40), into="test-").name
    written = recipe(tmp_path, task, data={"valid": valid})
    checked = regard("data", "check", written)
    assert checked.code in (1, 2), checked
    assert re.search(wanted, checked.out + checked.err), checked
    if task in SOME:
        assert re.search(wanted, regard.refused("train", written, "--run", tmp_path / "run"))
        assert not (tmp_path / "run").exists()
        run = trained(task) / "run"
        assert re.search(wanted, regard.refused("evaluate", run, "--source", file))


def test_a_label_unknown_at_test_time(regard, trained, tmp_path: Path) -> None:
    file = put(tmp_path, "classification", into="odd-")
    file.write_text(in_line("\tbad", "\tgreat")(file.read_text("utf-8")), "utf-8")
    wanted = f"{file}:8: label must be one met in training (bad, good); got 'great'. Correct it, or"
    run = trained("classification") / "run"
    assert wanted in regard.refused("evaluate", run, "--source", file)
    put(tmp_path, "classification")
    written = recipe(tmp_path, "classification", data={"valid": file.name})
    assert wanted in regard.refused("train", written, "--run", tmp_path / "run")
    assert not (tmp_path / "run").exists()
    checked = regard("data", "check", written)
    assert checked.code == 1
    assert (
        "! labels in valid that training does not have. Is it the right column?: 1" in checked.out
    )


def test_a_vocabulary_of_another_tokenizer(regard, trained, tmp_path: Path) -> None:
    run = Path(shutil.copytree(trained("tagging") / "run", tmp_path / "run"))
    shutil.rmtree(run / "tokenizer")
    shutil.copytree(trained("translation") / "run" / "tokenizer", run / "tokenizer")
    message = re.escape(str(run / "tokenizer")) + (
        " must hold the tokenizer that the run began with; got another one. Restore it from a copy"
    )
    for command in (("evaluate", run), ("predict", run), ("train", "--resume", "--run", run)):
        assert re.search(message, regard.refused(*command, stdin=b"a\n"))


# The other run's checkpoints also tell of another number of figures.
@pytest.mark.filterwarnings("ignore:.*must hold .* bytes of figures:regard.runs.files.RunWarning")
def test_weights_of_another_architecture(regard, trained, tmp_path: Path) -> None:
    run = Path(shutil.copytree(trained("classification") / "run", tmp_path / "run"))
    other = trained("tagging") / "run"
    before = regard.refused("evaluate", with_weights(run, other), stdin=b"")
    assert re.search(re.escape(str(run)) + " must hold weights of the model that its rec", before)
    assert re.search("got .*They are of different trainings: restore the whole folder", before)
    shutil.rmtree(run / "checkpoints")
    shutil.copytree(other / "checkpoints", run / "checkpoints")
    kept = (run / "checkpoints" / "000000002" / "model.safetensors").read_bytes()
    again = regard.refused("train", "--resume", "--run", run)
    assert (
        "000000002 must hold weights of the model that its recipe and tokenizer describe" in again
    )
    assert (run / "checkpoints" / "000000002" / "model.safetensors").read_bytes() == kept
    written = trained("classification") / "recipe.toml"
    refused = regard.refused("train", written, "--run", other)
    assert "holds a run with other settings: task was" in refused


def with_weights(run: Path, other: Path) -> Path:
    """The run with the weights of another, its card saying that they are its own."""
    content = (other / "model.safetensors").read_bytes()
    (run / "model.safetensors").write_bytes(content)
    card = unseal((run / "run.json").read_bytes(), where=run)
    (run / "run.json").write_bytes(seal({**card, "model": checksum(content)}))
    return run


@pytest.mark.parametrize("task", TINY)
def test_data_check_finds_nothing_where_nothing_is(regard, tmp_path: Path, task: str) -> None:
    put(tmp_path, task)
    valid = put(tmp_path, task, TINY[task].text(8, 40), into="test-").name
    checked = regard("data", "check", recipe(tmp_path, task, data={"valid": valid, "test": valid}))
    assert (checked.code, "No problems found." in checked.out) == (0, True), checked
    if task == "generation":
        assert "documents: train: 30; valid: 8; test: 8" in checked.out


PREDICTED = {
    "classification": (b'{"other": 1}\n', ".jsonl", "text must hold something to read"),
    "question_answering": (b'{"question": 1}\n', ".jsonl", "question must be text; got 1"),
    "tagging": (b"\xff\xff\n", ".txt", r"not UTF-8 \(byte 0xFF at place 1\)"),
}


@pytest.mark.parametrize("task", PREDICTED)
def test_lines_that_cannot_be_answered(regard, trained, tmp_path: Path, task: str) -> None:
    content, ending, message = PREDICTED[task]
    file = tmp_path / f"asked{ending}"
    file.write_bytes(content)
    run = trained(task) / "run"
    wanted = re.escape(f"{file}:1: ") + message
    assert re.search(wanted, regard.refused("predict", run, file))
    skipped = regard("predict", run, file, "--on-bad-line", "skip")
    assert (skipped.code, skipped.out.strip()) == (0, "")
    assert re.search(f"warning: {wanted}", skipped.err)


GOOD = {"classification": b'{"text": "Anna sat"}\n', "translation": b"Anna sat\n"}


@pytest.mark.parametrize("task", GOOD)
def test_lines_before_a_bad_one_are_answered(regard, trained, tmp_path: Path, task: str) -> None:
    is_json = GOOD[task].startswith(b"{")
    content = 3 * GOOD[task] + b"\xff\n" + 2 * GOOD[task]
    file = tmp_path / f"asked.{'jsonl' if is_json else 'txt'}"
    file.write_bytes(content)
    run = trained(task) / "run"
    lines = ("--output-format", "jsonl")
    for arguments, stdin, name in (((file,), b"", str(file)), ((), content, "stdin")):
        stopped = regard("predict", run, *arguments, *lines, stdin=stdin)
        assert stopped.code == 2
        assert len(stopped.out.splitlines()) == 3, stopped
        assert re.search(rf"^error: {re.escape(name)}:4: not UTF-8", stopped.err, re.MULTILINE)
        skipped = regard("predict", run, *arguments, *lines, "--on-bad-line", "skip", stdin=stdin)
        assert skipped.code == 0
        assert len(skipped.out.splitlines()) == 6
        assert "warning: 1 of 6 lines could not be read.\n" in skipped.err
