import re
import shutil
from pathlib import Path

import pytest
from tests.end_to_end.tiny_tasks import TINY, TRAINING

from regard.config import write_toml
from regard.runs.files import checksum, seal, unseal
from regard.tasks import TASKS

pytestmark = pytest.mark.slow

ENCODING = (
    r"FILE:31: not UTF-8 \(byte 0xE9 at position 13; WINDOWS-1252 would read 'Anna est allée au ja'"
    r"\)\. Say what it is in, --encoding NAME, or convert it\."
)


def spoiled(task, old, new):
    lines = TINY[task].text(30).splitlines(keepends=True)
    assert old in lines[7]
    lines[7] = lines[7].replace(old, new, 1)
    return "".join(lines)


def recipe(home, task, **sections):
    """The recipe of a task in small, written next to its text."""
    table = {name: dict(section) for name, section in TINY[task].table.items()}
    table.setdefault("data", {})["train"] = TINY[task].file
    table["training"] = dict(TRAINING)
    for name, settings in sections.items():
        table[name] = {**table.get(name, {}), **settings}
    path = home / "recipe.toml"
    path.write_text(write_toml({"task": task, **table}), "utf-8")
    return path


def put(home, task, text=None, *, into=""):
    """The text of a task in a file of its folder."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / f"{into}{TINY[task].file}"
    text = TINY[task].text(30) if text is None else text
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture(scope="module")
def trained(regard, tmp_path_factory):
    """The run of a task, trained once; its file and its recipe are next to it."""
    folder = tmp_path_factory.mktemp("tasks")

    def train(task):
        home = folder / task
        if not home.exists():
            put(home, task)
            valid = put(home, task, TINY[task].text(8, 40), into="test-").name
            written = recipe(home, task, data={"valid": valid, "test": valid})
            done = regard("train", written, "--run", home / "run")
            assert done.code == 0, done
        return home

    return train


def test_the_table_has_every_task():
    assert set(TINY) == set(TASKS)


def checked(regard, home, task, text, message):
    """The recipe of a spoiled text, of which ``data check`` says this."""
    file = put(home, task, text)
    valid = put(home, task, TINY[task].text(8, 40), into="test-").name
    written = recipe(home, task, data={"valid": valid})
    done = regard("data", "check", written)
    assert done.code in (1, 2), done
    assert re.search(message.replace("FILE", re.escape(str(file))), done.out + done.err), done
    return written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "FILE must hold [a-z ,]+; got (none|an empty file)"),
        (
            TINY["classification"].text(30).encode()
            + "Anna est allée au jardin.\n".encode("cp1252"),
            ENCODING,
        ),
    ],
    ids=["empty", "encoding"],
)
def test_every_command_that_reads_text_says_so(regard, trained, tmp_path, text, message):
    recipe_file = checked(regard, tmp_path, "classification", text, message)
    file = tmp_path / TINY["classification"].file
    expected = message.replace("FILE", re.escape(str(file)))
    assert re.search(expected, regard.refused("train", recipe_file, "--run", tmp_path / "run"))
    assert not (tmp_path / "run").exists()
    run = trained("classification") / "run"
    assert re.search(expected, regard.refused("evaluate", run, file))


def test_a_label_unknown_at_test_time(regard, trained, tmp_path):
    file = put(
        tmp_path, "classification", spoiled("classification", "\tbad", "\tgreat"), into="odd-"
    )
    expected = (
        f"{file}:8: label must be one met in training (bad, good); got 'great'. Correct it, or"
    )
    run = trained("classification") / "run"
    assert expected in regard.refused("evaluate", run, file)
    put(tmp_path, "classification")
    done = regard("data", "check", recipe(tmp_path, "classification", data={"valid": file.name}))
    assert done.code == 1
    assert "! labels in valid that training does not have. Is it the right column?: 1" in done.out


def test_a_vocabulary_of_another_tokenizer(regard, trained, tmp_path):
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
def test_weights_of_another_architecture(regard, trained, tmp_path):
    run = Path(shutil.copytree(trained("classification") / "run", tmp_path / "run"))
    other_run = trained("tagging") / "run"
    message = regard.refused("evaluate", with_weights(run, other_run), stdin=b"")
    assert re.search(re.escape(str(run)) + " must hold weights of the model that its rec", message)
    assert re.search("got .*They are of different trainings: restore the whole folder", message)
    shutil.rmtree(run / "checkpoints")
    shutil.copytree(other_run / "checkpoints", run / "checkpoints")
    weights = (run / "checkpoints" / "000000002" / "model.safetensors").read_bytes()
    resumed = regard.refused("train", "--resume", "--run", run)
    assert (
        "000000002 must hold weights of the model that its recipe and tokenizer describe" in resumed
    )
    assert (run / "checkpoints" / "000000002" / "model.safetensors").read_bytes() == weights
    recipe_file = trained("classification") / "recipe.toml"
    refused = regard.refused("train", recipe_file, "--run", other_run)
    assert "holds a run with other settings: task was" in refused


def with_weights(run, other):
    """The run with the weights of another, its card saying that they are its own."""
    content = (other / "model.safetensors").read_bytes()
    (run / "model.safetensors").write_bytes(content)
    card = unseal((run / "run.json").read_bytes(), where=run)
    (run / "run.json").write_bytes(seal({**card, "model": checksum(content)}))
    return run


@pytest.mark.parametrize("task", TINY)
def test_data_check_finds_nothing_where_nothing_is(regard, tmp_path, task):
    put(tmp_path, task)
    valid = put(tmp_path, task, TINY[task].text(8, 40), into="test-").name
    checked = regard("data", "check", recipe(tmp_path, task, data={"valid": valid, "test": valid}))
    assert (checked.code, "No problems found." in checked.out) == (0, True), checked
    if task == "generation":
        assert "pairs: train: 30; valid: 8; test: 8" in checked.out


GOOD = {"classification": b'{"text": "Anna sat"}\n', "translation": b"Anna sat\n"}


@pytest.mark.parametrize("task", GOOD)
def test_lines_before_a_bad_one_are_answered(regard, trained, tmp_path, task):
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
