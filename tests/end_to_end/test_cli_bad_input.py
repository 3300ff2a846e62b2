"""What a user may get wrong: one line that says what, where, and how to mend it."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PAIRS = "".join(f"{n}是我\tI am {n}.\n" for n in range(20))
Writes = Callable[[str, str | bytes], Path]


def test_a_missing_file(regard, tmp_path: Path) -> None:
    message = regard.refused("train", tmp_path / "nothing.tsv")
    assert message == f"error: {tmp_path / 'nothing.tsv'} must exist; it does not."


def test_text_where_a_file_belongs(regard) -> None:
    message = regard.refused("predict", "a run", "我爱音乐。")
    assert message.endswith("comes by stdin: echo '我爱音乐。' | regard predict 'a run'")


def test_a_line_that_is_not_utf8(regard, writes: Writes) -> None:
    message = regard.refused("train", writes("bad.tsv", PAIRS.encode() + b"caf\xe9\tcoffee\n"))
    assert "bad.tsv:21: not UTF-8 (byte 0xE9 at place 4)" in message
    assert "iconv" in message


def test_a_tab_too_many(regard, writes: Writes) -> None:
    message = regard.refused("train", writes("bad.tsv", PAIRS + "a\tb\tc\n"))
    assert "bad.tsv:21: expected 2 columns, found 3. Is there a tab inside a sentence?" in message


def test_columns_that_are_not_chosen(regard, writes: Writes) -> None:
    text = "".join(f"我们在家{n}。\tWe are at home {n}.\tCC-BY {n} (Anna)\n" for n in range(30))
    pairs = writes("cmn.tsv", text)
    done = regard("data", "check", pairs)
    assert done.code == 0
    assert f"regard data check {pairs} --set 'data.columns=[1, 2]'" in done.out + done.err
    for command in (("data", "check"), ("data", "sample"), ("train",)):
        named = ("--run", pairs.parent / "run") if command == ("train",) else ()
        message = regard.refused(*command, "transformer-tiny", pairs, *named)
        assert "cmn.tsv:1: expected 2 columns, found 3. Say which to read: --columns 1 2" in message
        assert "or --set 'data.columns=[1,2]' (regard train)." in message
    assert "columns must differ from each other; got [1, 1]." in regard.refused(
        "data", "check", pairs, "--columns", 1, 1
    )


def test_a_recipe_without_text_has_nothing_to_check(regard) -> None:
    for command in ("check", "sample"):
        assert regard.refused("data", command, "transformer-base") == (
            "error: transformer-base must name text in [data]; got none. Name the files behind it."
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model]\nnum_head = 4", "model.num_head is not a setting. Did you mean model.num_heads?"),
        ('[model]\ntype = "transfomer"', "Did you mean 'transformer'?"),
        (
            'task = "translaton"',
            "translation; got 'translaton'. Did you mean 'translation'?",
        ),
    ],
)
def test_a_recipe_that_says_something_else(
    regard, writes: Writes, corpus: Path, text: str, message: str
) -> None:
    data = f'[data]\ntrain = "{corpus / "train.tsv"}"\n'
    task = 'task = "translation"\n'
    content = f"{text}\n{data}" if text.startswith("task") else f"{task}{data}{text}\n"
    assert message in regard.refused("train", writes("recipe.toml", content))


def test_a_recipe_without_a_task(regard, writes: Writes, corpus: Path) -> None:
    recipe = writes("recipe.toml", f'[data]\ntrain = "{corpus / "train.tsv"}"\n')
    message = regard.refused("train", recipe)
    assert "task must be one of classification, generation, image_classification, " in message
    assert f'got none in {recipe}. Write it at the top: task = "translation".' in message


@pytest.mark.parametrize("recipe", ["classification-pretrained", "question-answering-pretrained"])
def test_nothing_to_begin_with(regard, tmp_path: Path, recipe: str) -> None:
    message = regard.refused("train", recipe, "texts.tsv", "--run", tmp_path / "run")
    assert "training.pretrained must name what training begins with; got nothing. Name a" in message
    assert "--set training.pretrained=FOLDER" in message
    anew = ("train", recipe, "texts.tsv", "--set", "training.pretrained=none")
    assert "texts.tsv must" in regard.refused(*anew) or "the ending of" in regard.refused(*anew)


def test_a_setting_that_is_none(regard, corpus: Path) -> None:
    recipe = corpus / "tiny.toml"
    assert "Did you mean model.cell?" in regard.refused("train", recipe, "--set", "model.cel=gru")
    assert "--set must read key=value; got 'x'" in regard.refused("train", recipe, "--set", "x")


def test_a_recipe_without_text(regard) -> None:
    message = regard.refused("train", "transformer-base", "--run", "nowhere")
    assert message == "error: data.train must name the training text; got nothing."


def test_a_vocabulary_larger_than_the_corpus_allows(regard, corpus: Path, tmp_path: Path) -> None:
    message = regard.refused(
        *("train", corpus / "tiny.toml", "--run", tmp_path / "run"),
        *("--set", "tokenizer.vocab_size=50000"),
    )
    assert "vocab_size must be at most" in message
    assert "The corpus allows no larger vocabulary" in message


@pytest.fixture
def copied(run: Path, tmp_path: Path) -> Path:
    shutil.copytree(run, tmp_path / "copy")
    return tmp_path / "copy"


def test_a_damaged_run(regard, copied: Path) -> None:
    model = copied / "model.safetensors"
    content = bytearray(model.read_bytes())
    content[len(content) // 2] ^= 1
    model.write_bytes(content)
    message = regard.refused("predict", copied, stdin=b"a\n")
    assert str(model) in message
    assert "damaged" in message


LONG = "n" * 300


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", LONG),
        ("train", f"{LONG}.toml"),
        ("train", f"{LONG}.tsv"),
        ("train", "CORPUS/tiny.toml", "--run", LONG),
        ("train", "--resume", "--run", LONG),
        ("predict", LONG),
        ("predict", "RUN", LONG),
        ("evaluate", LONG),
        ("evaluate", "RUN", "--compare", LONG),
        ("evaluate", "RUN", "--source", f"{LONG}.tsv"),
        ("look", LONG, "text"),
        ("look", "RUN", "--file", LONG),
        ("look", "RUN", "text", "--out", f"{LONG}.html"),
        ("look", "--model", LONG, "CORPUS/tiny.toml"),
        ("serve", LONG),
        ("demo", "--run", LONG),
        ("data", "check", f"{LONG}.tsv"),
        ("data", "check", "CORPUS/train.tsv", "--run", LONG),
    ],
)
def test_a_path_that_is_none(regard, corpus: Path, run: Path, arguments: tuple[str, ...]) -> None:
    known = [each.replace("CORPUS", str(corpus)).replace("RUN", str(run)) for each in arguments]
    assert "File name too long" in regard.refused(*known)
    odd = [each.replace(LONG, "a\0b") for each in known]
    assert "an argument must hold no NUL character; got 'a\\x00b" in regard.refused(*odd)
    under_a_file = [each.replace(LONG, str(corpus / "train.tsv" / "x")) for each in known]
    assert "x" in regard.refused(*under_a_file)


def test_a_path_that_is_not_ours(regard, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, **options: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "exists", refuse)
    monkeypatch.setattr(Path, "is_dir", refuse)
    message = regard.refused("predict", "theirs")
    assert message == (
        "error: theirs must be a path that can be looked at; got 'Permission denied'. "
        "Choose another."
    )
    assert "theirs must be a path that can be" in regard.refused("train", "demo", "--run", "theirs")
    monkeypatch.setattr(Path, "is_file", refuse)
    message = regard.refused("train", "theirs")
    assert message == "error: theirs must be one that you may use; got: Permission denied."


def test_names_that_no_recipe_can_keep(regard, corpus: Path) -> None:
    for name in ("a\\u0000b", "caf\udce9"):
        message = regard.refused("train", corpus / "tiny.toml", "--set", f'data.train=["{name}"]')
        assert "data.train[0] must be text in UTF-8, without NUL; got" in message


def test_nothing_to_resume(regard, tmp_path: Path) -> None:
    message = regard.refused("train", "--resume", "--run", tmp_path)
    assert "--resume must go with the folder of a run; run.json is missing in" in message
    assert "got 'none'. Name it" in regard.refused("train", "--resume")


def test_nothing_to_evaluate_on(regard, corpus: Path, run: Path) -> None:
    assert "split must be one of test, train, valid; got 'tests'. Did you mean 'test'?" in (
        regard.refused("evaluate", run, "--split", "tests")
    )
    assert "must go with --source" in regard.refused("evaluate", run, "--target", "a")
    message = regard.refused("evaluate", run, "--also", run)
    assert message == f"error: --also must go with a run of a classifier; got {run}."
    assert "must have a line for each of the 30 sentences; got 300" in regard.refused(
        *("evaluate", run, "--source", corpus / "test.tsv"),
        *("--references", corpus / "train.tsv"),
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--beam-size", 0), "--beam-size must be at least 1; got 0. Use 1 for greedy search."),
        (("--n-best", 2, "--attention"), "--attention must go with one translation a line"),
        (("--beam-size", "wide"), "--beam-size must be a whole number; got 'wide'."),
        (("--beem-size", 2), "beem-size"),
    ],
)
def test_options_out_of_range(
    regard, run: Path, arguments: tuple[object, ...], message: str
) -> None:
    assert message in regard.refused("predict", run, *arguments, stdin=b"a\n")


def test_text_that_cannot_be_looked_at(regard, run: Path) -> None:
    assert "source must hold text to look at; got an empty line" in regard.refused("look", run, " ")
    with_target = regard.refused("look", run, "我", "爱", "--target", "I")
    assert "target must be of one text; got 2 texts" in with_target
    assert "page.html must be a file that can be written" in regard.refused(
        "look", run, "我", "--output", run / "run.json" / "page.html"
    )


def test_a_command_that_is_none(regard) -> None:
    assert 'Did you mean "train"?' in regard.refused("trian")
    assert "Did you mean 'demo'?" in regard.refused("train", "dmo")
    assert "must be a recipe or files of text; got nothing" in regard.refused("train")
    assert "files must name text; got nothing" in regard.refused("data", "check")


@pytest.mark.parametrize("name", ["model.onnx", "model.pt2"])
def test_a_graph_is_no_run(regard, writes: Writes, name: str) -> None:
    content = b"\x08\x08pytorch" if name == "model.onnx" else b"PK\x03\x04"
    message = regard.refused("predict", writes(name, content), stdin="我\n".encode())
    assert f"{name} must be a run folder; got a file" in message
