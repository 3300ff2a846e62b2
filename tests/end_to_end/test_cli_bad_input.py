import errno
import os
import shlex
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PAIRS = "".join(f"{n}是我\tI am {n}.\n" for n in range(20))
TRAINED = 'task = "translation"\ndata.train = "pairs.tsv"\n'
FILES = {
    "pairs.tsv": PAIRS.encode(),
    "tab.tsv": f"{PAIRS}a\tb\tc\n".encode(),
    "type.toml": f'{TRAINED}[model]\ntype = "transfomer"\n'.encode(),
    "task.toml": TRAINED.replace("translation", "translaton").encode(),
    "none.toml": b'data.train = "pairs.tsv"\n',
}
# Command lines, where TINY is a recipe, TEST and TRAIN its texts and RUN its run, and the messages.
MISTAKES = [
    # Text and recipes.
    ("predict 'a run' 我爱音乐。", "by stdin: echo '我爱音乐。' | regard predict 'a run'"),
    ("train tab.tsv", "tab.tsv:21: expected 2 columns, found 3. Is there a tab inside a sentence?"),
    ("data check transformer-base", "transformer-base must name text in [data]; got none. Name"),
    ("train type.toml", "Did you mean 'transformer'?"),
    ("train task.toml", "translation; got 'translaton'. Did you mean 'translation'?"),
    ("train none.toml", "task must be one of classification, generation, image_classification, "),
    ("train none.toml", 'none.toml. Write it at the top: task = "translation".'),
    ("train TINY --set tokenizer.vocab_size=50000", "The corpus allows no larger vocabulary"),
    (
        "train TINY --set 'data.train=[\"a\\u0000b\"]'",
        "data.train[0] must be text in UTF-8, without",
    ),
    (
        "train question-answering-pretrained x.tsv",
        "training.pretrained must name what training beg",
    ),
    ("train question-answering-pretrained x.tsv", "--pretrained FOLDER"),
    # Runs.
    ("train --resume --run .", "--resume must go with the folder of a run; run.json is missing in"),
    ("train --resume --run no", "a run; there is no folder no. Leave out --resume to begin it."),
    ("train --resume", "must go with the folder of a run; got none. Name it: --run FOLDER."),
    ("evaluate RUN --split tests", "test, train, valid; got 'tests'. Did you mean 'test'?"),
    ("evaluate RUN --also RUN", "error: --also must be left out for a run of translation; it is "),
    ("evaluate RUN TEST TEST TRAIN", "line for each of the 30 sentences; got 300"),
    ("predict RUN --n-best 2 --attention", "--attention must go with one translation a line"),
    ("predict RUN --score --attention", "--attention must be left out with --score; nothing is"),
    ("predict RUN --beem-size 2", "beem-size"),
    ("look RUN 我 爱 --target I", "target must be of one text; got 2 texts"),
    (
        "look RUN 我 --output RUN/run.json/page.html",
        "page.html must be writable; got 'Not a directory'.",
    ),
    ("export RUN RUN", "error: OUTPUT must be a new path; there is something at "),
    ("export RUN new --to ctranslate2", "error: --to must be one that can hold the run; got 'ctr"),
    # Commands.
    ("trian", 'Did you mean "train"?'),
    ("train dmo", "Did you mean 'demo'?"),
    ("data check", "files must name text; got nothing"),
]


@pytest.mark.parametrize(("line", "message"), MISTAKES)
def test_a_mistake_is_named(regard, corpus, run, tmp_path, monkeypatch, line, message):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    paths = {"TINY": corpus / "tiny.toml", "RUN": run}
    paths |= {"TEST": corpus / "test.tsv", "TRAIN": corpus / "train.tsv"}
    for name, path in paths.items():
        line = line.replace(name, str(path))
    assert message in regard.refused(*shlex.split(line), stdin=b"a\n")


def test_a_damaged_run(regard, run, tmp_path):
    model = Path(shutil.copytree(run, tmp_path / "copy")) / "model.safetensors"
    content = bytearray(model.read_bytes())
    content[len(content) // 2] ^= 1
    model.write_bytes(content)
    message = regard.refused("predict", tmp_path / "copy", stdin=b"a\n")
    assert str(model) in message
    assert "damaged" in message


def test_columns_that_are_not_chosen(regard, tmp_path):
    text = "".join(f"我们在家{n}。\tWe are at home {n}.\tCC-BY {n} (Anna)\n" for n in range(30))
    pairs = tmp_path / "cmn.tsv"
    pairs.write_text(text, "utf-8")
    done = regard("data", "check", pairs)
    assert done.code == 0
    assert f"regard data check {pairs} --set 'data.columns=[1, 2]'" in done.out + done.err
    for command in (("data", "check"), ("train",)):
        named = ("--run", pairs.parent / "run") if command == ("train",) else ()
        message = regard.refused(*command, "transformer-tiny", pairs, *named)
        assert "cmn.tsv:1: expected 2 columns, found 3. Say which to read, " in message
        assert "--set 'data.columns=[1,2]'." in message


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
        ("evaluate", "RUN", f"{LONG}.tsv"),
        ("look", LONG, "text"),
        ("look", "RUN", "--file", LONG),
        ("look", "RUN", "text", "--out", f"{LONG}.html"),
        ("look", "--model", LONG, "CORPUS/tiny.toml"),
        ("serve", LONG),
        ("demo", "--run", LONG),
        ("data", "check", f"{LONG}.tsv"),
    ],
)
def test_a_path_that_is_none(regard, corpus, run, arguments):
    words = [each.replace("CORPUS", str(corpus)).replace("RUN", str(run)) for each in arguments]
    assert "File name too long" in regard.refused(*words)
    with_nul = [each.replace(LONG, "a\0b") for each in words]
    assert "an argument must hold no NUL character; got 'a\\x00b" in regard.refused(*with_nul)
    under_a_file = [each.replace(LONG, str(corpus / "train.tsv" / "x")) for each in words]
    assert "x" in regard.refused(*under_a_file)


def test_a_path_that_is_not_ours(regard, monkeypatch):
    def refuse(self, **options):
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
