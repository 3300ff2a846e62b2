import json

import pytest

from regard.errors import DataError
from regard.tasks import TASKS, recipe_from_table
from regard.tasks.checking import check_examples
from regard.text import Pair
from regard.text.languages import length_unit, main_script
from regard.text.normalization import has_unspaced

GOOD = "".join(f"good\t味道很好{n}\nbad\t味道不好{n}\n" for n in range(10))


def report(folder, task, ending, texts, **data):
    files = {}
    for split, text in texts.items():
        path = folder / f"{split}.{ending}"
        path.write_text(text, encoding="utf-8")
        files[split] = [str(path)]
    recipe = recipe_from_table({"task": task, "data": {**files, **data}})
    return TASKS[task].task.check(recipe)


def findings(report):
    return {each.kind: each for each in report.findings}


def test_labels_are_counted_and_good_files_have_no_problems(tmp_path):
    checked = report(tmp_path, "classification", "tsv", {"train": GOOD}, text=2, label=1)
    assert checked.counts == {"train": 20}
    assert checked.labels == {"good": 10, "bad": 10}
    assert checked.sides["text"].unit == "characters"
    assert not checked.problems
    assert checked.lines()[-1] == "No problems found."
    assert "labels: good 10 (50.0%), bad 10 (50.0%)" in checked.lines()


def test_what_is_wrong_with_labelled_texts_is_found_with_its_line(tmp_path):
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


def test_tables_of_numbers_and_running_text_are_checked_too(tmp_path):
    table = {"train": "x,y\n1,2\n2,3\n1,4\nhigh,5\n", "test": "x,y\n2,9\n"}
    kinds = findings(report(tmp_path, "regression", "csv", table, on_bad_line="skip"))
    assert "train.csv:5: x must be a number; got 'high'" in kinds["bad lines"].examples[0]
    assert (kinds["duplicates"].count, kinds["overlap"].count) == (1, 1)
    text = report(tmp_path, "language_modelling", "txt", {"train": "a b\nc\n", "test": "a b\nc\n"})
    assert text.labels == {}
    assert findings(text)["overlap"].count == 1


@pytest.mark.parametrize(
    ("label", "kind", "case"),
    [
        (lambda n: "Good" if n == 3 else "good", "spellings", "'good' 23, 'Good' 1"),
        (lambda n: "None" if n % 2 else "good", "no label", "'None': 12"),
        (lambda n: "bad" if n == 3 else "good", "one label", "train.tsv:4: 'bad': A text 3"),
        (lambda n: ("food", "price", "food;price")[n % 3], "combined label", "'food;price': 8"),
    ],
)
def test_labels_that_are_hardly_meant_are_found(tmp_path, label, kind, case):
    rows = "".join(f"A text {n}\t{label(n)}\n" for n in range(24))
    (found,) = findings(report(tmp_path, "classification", "tsv", {"train": rows}))[kind].examples
    assert found.endswith(case)


def test_plus_and_minus_are_labels_and_minus_alone_is_none(tmp_path):
    for other, expected in (("+", set()), ("good", {"no label"})):
        rows = "".join(f"A text {n}\t{'-' if n % 2 else other}\n" for n in range(24))
        found = findings(report(tmp_path, "classification", "tsv", {"train": rows}))
        assert found.keys() & {"no label"} == expected


def test_what_is_only_worth_knowing_takes_a_line(tmp_path):
    checked = report(tmp_path, "classification", "tsv", {"train": GOOD + GOOD}, text=2, label=1)
    repeats = f"{tmp_path}/train.tsv:21 = {tmp_path}/train.tsv:1: 味道很好0"
    assert f"- training texts that repeat an earlier one: 20; {repeats}" in checked.lines()


def test_nothing_to_check_is_refused():
    recipe = recipe_from_table({"task": "tagging"})
    with pytest.raises(DataError, match=r"data\.train must name examples to check; got none\."):
        TASKS["tagging"].task.check(recipe)


PAIRS = [
    ("我爱中国。", "I love China."),
    ("你好！", "Hello!"),
    ("他在看书。", "He is reading a book."),
]


def pairs(texts, name="train.tsv"):
    return [Pair(s, t, (t,), f"{name}:{n}") for n, (s, t) in enumerate(texts, start=1)]


def check_pairs(train, test=(), **options):
    parts = {"train": train, "valid": (), "test": test}
    checked = TASKS["translation"].task.checked

    def read(split, bad_lines):
        return [checked(pair) for pair in parts[split]]

    return check_examples(read, unit="pairs", is_translation=True, **options)


def test_sides_are_summed_up_in_words_or_characters():
    report = check_pairs(pairs(PAIRS))
    assert (report.counts, report.findings) == ({"train": 3}, ())
    source, target = report.sides["source"], report.sides["target"]
    assert (source.script, source.unit, target.unit) == ("Han or kana", "characters", "words")
    assert (target.longest, target.longest_where) == (6, "train.tsv:3")
    assert target.mean == pytest.approx((4 + 2 + 6) / 3)
    assert (source.median, source.p95) == (5, 5)
    assert report.lines()[-3:] == [
        "target: 3 distinct, 19 characters, mostly Latin",
        "    4.0 words on average, half at most 4, 95 % at most 6, the longest 6 (train.tsv:3)",
        "No problems found.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("我爱中国", "ひらがな", "カタカナ", "ㄅㄆㄇ", "ฉันรัก", "ຂ້ອຍຮັກ", "ខ្ញុំ", "ချစ်တယ်", "བོད་སྐད"),
        *("I love", "Я люблю", "나는 너를", "أحب", "मैं", "12"),
    ],
)
def test_the_unit_is_what_words_of_the_script_are(text):
    unit = "characters" if has_unspaced(text) else "words"
    assert length_unit(main_script(text)) == unit


def test_overlap_of_each_side_ignores_case_spaces_and_punctuation():
    test = pairs([("我 爱中国", "I adore China"), ("再见", "hello"), ("新", "New")], "test.tsv")
    report = check_pairs(pairs(PAIRS), test)
    overlaps = [finding for finding in report.problems if finding.kind == "overlap"]
    assert [(finding.meaning, finding.examples) for finding in overlaps] == [
        (
            "pairs of test whose source occurs in training, so that results flatter",
            ("test.tsv:1 = train.tsv:1: 我 爱中国",),
        ),
        (
            "pairs of test whose target occurs in training, so that results flatter",
            ("test.tsv:2 = train.tsv:2: hello",),
        ),
    ]
    new = [finding.examples for finding in report.findings if finding.kind == "new characters"]
    assert new[0] == (
        "test.tsv:2: '再' in 再见",
        "test.tsv:3: '新' in 新",
        "test.tsv:2: '见' in 再见",
    )


def test_repeats_are_distinguished_from_several_translations():
    report = check_pairs(pairs([*PAIRS, PAIRS[0], ("你好！", "Hi!"), ("您好！", "Hi!")]))
    by_kind = findings(report)
    assert by_kind["duplicates"].examples == (
        "train.tsv:4 = train.tsv:1: 我爱中国。 | I love China.",
    )
    assert by_kind["repeated sources"].examples == ("train.tsv:2: 你好！ (2 times)",)
    assert by_kind["repeated targets"].examples == ("train.tsv:5: Hi! (2 times)",)
    assert report.problems == ()


def test_wrong_encodings_name_the_file_of_their_side():
    bad = Pair("x &amp; y", "schÃ¶n", ("schÃ¶n",), "a.en:9", "a.de:9")
    by_kind = findings(check_pairs([*pairs(PAIRS), bad]))
    assert by_kind["encoding"].examples == ("a.de:9: 'Ã¶' should be 'ö': schÃ¶n",)
    assert by_kind["markup"].examples == ("a.en:9: &amp;: x &amp; y",)


def test_exchanged_and_copied_pairs_are_found():
    report = check_pairs(pairs([*PAIRS, ("I see.", "我明白了。"), ("Tom said", "Tom said")]))
    by_kind = findings(report)
    assert by_kind["exchanged"].examples == ("train.tsv:4: I see. | 我明白了。",)
    direction = "(Latin to Han or kana; the others are Han or kana to Latin)"
    assert by_kind["exchanged"].meaning == f"pairs that look exchanged {direction}"
    assert by_kind["copies"].examples == ("train.tsv:5: Tom said | Tom said",)


def test_lengths_that_do_not_fit_are_found():
    usual = [(f"w{i} " * (5 + i % 7), f"v{i} " * (5 + i % 5)) for i in range(50)]
    report = check_pairs(pairs([*usual, ("one long sentence " * 10, "@@")]))
    assert findings(report)["lengths"].examples[0].startswith("train.tsv:51: 180 and 2 characters")
    assert findings(report)["lengths"].count == 1


def test_the_report_is_plain_data_and_keeps_some_examples():
    report = check_pairs(pairs([*PAIRS, *[PAIRS[0]] * 3]), pairs(PAIRS, "val.tsv"), examples=2)
    are_problems = [finding.is_problem for finding in report.findings]
    assert are_problems == sorted(are_problems, reverse=True)
    assert findings(report)["duplicates"].count == 3
    assert len(findings(report)["duplicates"].examples) == 2
    table = json.loads(json.dumps(report.to_dict()))
    assert table["counts"] == {"train": 6, "test": 3}
    assert {finding["kind"] for finding in table["findings"]} >= {"duplicates", "overlap"}
    assert table["sides"]["source"]["longest"] == 5
