import json

import pytest

from regard.errors import DataError
from regard.text import (
    BadLines,
    Pair,
    TokenizerConfig,
    check_pairs,
    read_pairs,
    train_pair_tokenizer,
)
from regard.text.checking import STEPS, length_unit
from regard.text.languages import main_script
from regard.text.normalization import has_unspaced

GOOD = [
    ("我爱中国。", "I love China."),
    ("你好！", "Hello!"),
    ("他在看书。", "He is reading a book."),
]


def pairs(texts, name="train.tsv"):
    return [Pair(s, t, (t,), f"{name}:{n}") for n, (s, t) in enumerate(texts, start=1)]


def findings(report):
    return {finding.kind: finding for finding in report.findings}


def test_sides_are_summed_up_in_words_or_characters():
    steps = []
    report = check_pairs(pairs(GOOD), progress=steps.append)
    assert sum(steps) == STEPS
    assert (report.pairs, report.findings, report.lines()[-1]) == (3, (), "No problems found.")
    assert report.source.script == "Han or kana"
    target = report.target.lengths
    assert (target.longest, target.longest_where) == (6, "train.tsv:3")
    assert target.mean == pytest.approx((4 + 2 + 6) / 3)
    assert (report.source.lengths.median, report.source.lengths.p95) == (5, 5)
    assert (report.source.lengths.unit, report.target.lengths.unit) == ("characters", "words")
    assert "    4.3 characters on average, half at most 5" in "\n".join(report.lines())
    assert "    4.0 words on average, half at most 4" in "\n".join(report.lines())


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


def test_sides_are_summed_up_in_tokens_if_there_is_a_tokenizer():
    tokenizer = train_pair_tokenizer(*zip(*GOOD, strict=True), TokenizerConfig(type="characters"))
    report = check_pairs(pairs(GOOD), tokenizer=tokenizer)
    assert report.target.lengths.unit == "tokens"
    assert report.target.lengths.longest == len(GOOD[2][1])


def test_overlap_ignores_case_spaces_and_punctuation():
    held_out = pairs([("我 爱中国", "I adore China"), ("再见", "hello"), ("新", "New")], "test.tsv")
    report = check_pairs(pairs(GOOD), held_out={"test": held_out})
    overlaps = [finding for finding in report.problems if finding.kind == "overlap"]
    assert [finding.examples for finding in overlaps] == [
        ("test.tsv:1 = train.tsv:1: 我 爱中国",),
        ("test.tsv:2 = train.tsv:2: hello",),
    ]
    assert "source occurs in training" in overlaps[0].meaning
    assert "target occurs in training" in overlaps[1].meaning


def test_repeats_are_distinguished_from_several_translations():
    report = check_pairs(pairs([*GOOD, GOOD[0], ("你好！", "Hi!"), ("您好！", "Hi!")]))
    by_kind = findings(report)
    assert by_kind["duplicates"].examples == (
        "train.tsv:4 = train.tsv:1: 我爱中国。 | I love China.",
    )
    assert by_kind["repeated sources"].examples == ("train.tsv:2: 你好！ (2 times)",)
    assert by_kind["repeated targets"].examples == ("train.tsv:5: Hi! (2 times)",)
    assert report.problems == ()


def test_wrong_encodings_name_the_file_of_their_side():
    bad = Pair("x &amp; y", "schÃ¶n", ("schÃ¶n",), "a.en:9", "a.de:9")
    by_kind = findings(check_pairs([*pairs(GOOD), bad]))
    assert by_kind["encoding"].examples == ("a.de:9: 'Ã¶' should be 'ö': schÃ¶n",)
    assert by_kind["markup"].examples == ("a.en:9: &amp;: x &amp; y",)


def test_exchanged_and_copied_pairs_are_found():
    report = check_pairs(pairs([*GOOD, ("I see.", "我明白了。"), ("Tom said", "Tom said")]))
    by_kind = findings(report)
    assert by_kind["exchanged"].examples == ("train.tsv:4: I see. | 我明白了。",)
    assert by_kind["copies"].examples == ("train.tsv:5: Tom said | Tom said",)


def test_lengths_that_do_not_fit_are_found():
    fitting = [(f"w{i} " * (5 + i % 7), f"v{i} " * (5 + i % 5)) for i in range(50)]
    report = check_pairs(pairs([*fitting, ("one long sentence " * 10, "@@")]))
    assert findings(report)["lengths"].examples[0].startswith("train.tsv:51: 180 and 2 characters")
    assert findings(report)["lengths"].count == 1


@pytest.mark.parametrize(
    ("type_", "kind"), [("words", "lost characters"), ("bpe", "spelled characters")]
)
def test_characters_outside_the_tokenizer_are_found(type_, kind):
    tokenizer = train_pair_tokenizer(*zip(*GOOD, strict=True), TokenizerConfig(type=type_))
    held_out = pairs([("我爱你们", "I love it 🙂")], "test.tsv")
    report = check_pairs(pairs(GOOD), held_out={"test": held_out}, tokenizer=tokenizer)
    examples = [
        case for finding in report.findings if finding.kind == kind for case in finding.examples
    ]
    assert "test.tsv:1: '们' in 我爱你们" in examples
    assert "test.tsv:1: '🙂' in I love it 🙂" in examples


def test_lines_left_out_are_reported_with_their_reasons(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("我\tI\n\n你\n \tx\n", encoding="utf-8")
    bad = BadLines()
    report = check_pairs(read_pairs(path, on_bad_line="skip", bad_lines=bad), bad_lines=bad)
    assert {finding.meaning: finding.count for finding in report.problems} == {
        "lines left out, columns": 1,
        "lines left out, empty source": 1,
    }


def test_the_report_is_plain_data():
    training_pairs = pairs([*GOOD, *[GOOD[0]] * 3])
    report = check_pairs(training_pairs, held_out={"val": pairs(GOOD, "val.tsv")}, examples=2)
    are_problems = [finding.is_problem for finding in report.findings]
    assert are_problems == sorted(are_problems, reverse=True)
    assert findings(report)["duplicates"].count == 3
    assert len(findings(report)["duplicates"].examples) == 2
    table = json.loads(json.dumps(report.to_dict()))
    assert table["pairs"] == 6
    assert table["held_out"] == {"val": 3}
    assert {finding["kind"] for finding in table["findings"]} >= {"duplicates", "overlap"}
    assert table["source"]["lengths"]["longest"] == 5
    with pytest.raises(DataError, match="must hold at least one pair"):
        check_pairs([])
