from pathlib import Path

import pytest

from regard.errors import DataError
from regard.tasks import TASKS, recipe_from_table

GOOD = "".join(f"good\t味道很好{n}\nbad\t味道不好{n}\n" for n in range(10))


def report(folder: Path, task: str, ending: str, texts: dict[str, str], **data: object):
    files = {}
    for split, text in texts.items():
        path = folder / f"{split}.{ending}"
        path.write_text(text, encoding="utf-8")
        files[split] = [str(path)]
    recipe = recipe_from_table({"task": task, "data": {**files, **data}})
    return TASKS[task].task.check(recipe)


def findings(report):
    return {each.kind: each for each in report.findings}


def test_labels_are_counted_and_good_files_have_no_problems(tmp_path: Path):
    checked = report(tmp_path, "classification", "tsv", {"train": GOOD}, text=2, label=1)
    assert checked.counts == {"train": 20}
    assert checked.labels == {"good": 10, "bad": 10}
    assert checked.lengths.unit == "characters"
    assert not checked.problems
    assert checked.lines()[-1] == "No problems found."
    assert "    good: 10 (50.0%)" in checked.lines()


def test_what_is_wrong_with_labelled_texts_is_found_with_its_line(tmp_path: Path):
    train = GOOD + "good\tcafÃ© 很好\nbad\t味道很好3\nbad\n"
    test = "good\t味道很好0\nodd\t别的\n"
    texts = {"train": train, "test": test}
    checked = report(tmp_path, "classification", "tsv", texts, text=2, label=1, on_bad_line="skip")
    kinds = findings(checked)
    assert kinds["bad lines"].examples[0].startswith(f"{tmp_path}/train.tsv:23: expected 2 columns")
    assert kinds["overlap"].examples == (
        f"{tmp_path}/test.tsv:1 = {tmp_path}/train.tsv:1: 味道很好0",
    )
    assert kinds["unknown label"].examples == (f"{tmp_path}/test.tsv:2: 'odd': 别的",)
    assert kinds["contradiction"].count == kinds["duplicates"].count == 1
    assert kinds["contradiction"].examples[0].startswith(f"{tmp_path}/train.tsv:22: 'bad', at ")
    assert kinds["encoding"].examples[0].startswith(f"{tmp_path}/train.tsv:21: ")
    assert not kinds["duplicates"].is_problem
    assert {each.kind for each in checked.problems} == {
        "bad lines", "overlap", "unknown label", "contradiction", "encoding",
    }  # fmt: skip


def test_tables_of_numbers_and_running_text_are_checked_too(tmp_path: Path):
    table = {"train": "x,y\n1,2\n2,3\n1,4\nhigh,5\n", "test": "x,y\n2,9\n"}
    kinds = findings(report(tmp_path, "regression", "csv", table, on_bad_line="skip"))
    assert "train.csv:5: x must be a number; got 'high'" in kinds["bad lines"].examples[0]
    assert (kinds["duplicates"].count, kinds["overlap"].count) == (1, 1)
    text = report(tmp_path, "language_modelling", "txt", {"train": "a b\nc\n", "test": "a b\nc\n"})
    assert text.labels == {}
    assert findings(text)["overlap"].count == 1


def test_nothing_to_check_is_refused():
    recipe = recipe_from_table({"task": "tagging"})
    with pytest.raises(DataError, match=r"data\.train must name examples to check; got none\."):
        TASKS["tagging"].task.check(recipe)
