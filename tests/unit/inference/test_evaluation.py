import json
import random
import time

import pytest
import torch
from tests.unit.inference.conftest import letters_predictor

from regard.errors import DataError, SettingError
from regard.inference.evaluation.comparison import compare, compare_answers
from regard.inference.evaluation.evaluate import _with_intervals, read_data
from regard.inference.evaluation.report import answer_timed, beside_baselines
from regard.inference.evaluation.texts import evaluate, quality_by_length, trivial_outputs
from regard.tasks.labels.classification import Classification, LabelledText
from regard.tasks.labels.label_task import LabelPrediction

REFERENCES = [f"the number {n} comes before {n + 1}" for n in range(40)]
SOURCES = [f"数字{n}在{n + 1}之前" + "呢" * n for n in range(40)]
# The first ten are right, the next all wrong, the rest near.
OUTPUTS = [
    *REFERENCES[:10],
    *(["???"] * 10),
    *(line.replace("before", "after") for line in REFERENCES[20:]),
]


def report(**settings):
    settings = {"sources": SOURCES, "languages": ("zh", None), "resamples": 50} | settings
    return evaluate(OUTPUTS, REFERENCES, **settings)


def test_figures_have_intervals_and_signatures():
    evaluation = report()
    assert [score.name for score in evaluation.scores] == [
        "BLEU",
        "BLEU lower-cased",
        "chrF2",
        "exact match",
    ]
    assert evaluation.score("exact match") == 25
    for score in evaluation.scores:
        assert score.margin > 0
        assert "bs:50" in score.signature


def test_chinese_targets_are_counted_by_characters():
    evaluation = evaluate(["我爱中国。"], [["我爱中国。", "我热爱中国。"]], languages=("zh", "zh"))
    assert [score.name for score in evaluation.scores] == ["BLEU", "chrF2", "exact match"]
    assert "tok:zh" in evaluation.scores[0].signature


def test_baselines_are_scored_with_the_outputs():
    common = ["b", REFERENCES[3], REFERENCES[3], "a"]
    evaluation = report(trivial=trivial_outputs(SOURCES, common))
    copy, common = evaluation.baselines
    assert copy.name == "the source itself"
    assert common.name == f"always {REFERENCES[3]!r}"
    assert {score.name: score.value for score in common.scores}["exact match"] == 2.5
    assert [score.name for score in copy.scores] == [score.name for score in evaluation.scores]
    assert report(sources=None).baselines == ()


def test_ten_outputs_to_read():
    outputs = report().outputs
    assert [output.kind for output in outputs] == ["best"] * 3 + ["worst"] * 3 + ["random"] * 4
    assert len({output.index for output in outputs}) == 10
    assert all(output.chrf == pytest.approx(100) for output in outputs[:3])
    assert all(output.text == "???" for output in outputs[3:6])
    assert all(output.references == (REFERENCES[output.index],) for output in outputs)
    assert all(output.source == SOURCES[output.index] for output in outputs)


def test_quality_by_length_counts_characters_of_unspaced_sources():
    buckets = quality_by_length(
        ["x"] * 4,
        ["x"] * 4,
        ["我 爱", "我爱中国", "我爱中国啊", "我" * 9],
        source_language="zh",
        edges=[4, 8],
    )
    assert [(one.name, one.count, one.mean_length) for one in buckets] == [
        ("1-4", 2, 3.0),
        ("5-8", 1, 5.0),
        ("9+", 1, 9.0),
    ]


def test_quality_by_length_counts_words_otherwise():
    buckets = quality_by_length(["x", "x"], ["x", "x"], ["a long one", "short"], edges=[1, 2])
    assert [(one.name, one.count) for one in buckets] == [("1-1", 1), ("3+", 1)]


def test_a_report_is_json_and_lines():
    evaluation = report(trivial=trivial_outputs(SOURCES, ["a"]))
    read = json.loads(json.dumps(evaluation.to_dict(), ensure_ascii=False))
    assert read["count"] == 40
    assert read["scores"][0]["value"] == evaluation.score("BLEU")
    lines = str(evaluation).splitlines()
    assert lines[0] == "40 sentences"
    assert any("baseline, always 'a'" in line for line in lines)
    assert any("???" in line for line in lines)


def test_an_unknown_figure_is_named():
    with pytest.raises(SettingError, match=r"name must be one of BLEU, .*; got 'bleu'"):
        report(resamples=0).score("bleu")


def test_two_systems_are_compared_sentence_by_sentence():
    better = [*OUTPUTS[:10], *REFERENCES[10:18], *OUTPUTS[18:39], "???"]
    duel = compare(OUTPUTS, better, REFERENCES, sources=SOURCES, trials=200)
    assert (duel.better, duel.worse, duel.equal) == (8, 1, 31)
    assert duel.comparisons[0].difference > 0
    assert [one.gain > 0 for one in duel.differences] == [True] * 5 + [False]
    assert duel.differences[-1].index == 39
    assert duel.differences[0].source == SOURCES[duel.differences[0].index]
    json.dumps(duel.to_dict(), ensure_ascii=False)
    assert "8 sentences better, 1 worse, 31 equal" in str(duel)


def test_what_does_not_pair_up_is_refused():
    with pytest.raises(DataError, match="sources must have one line per output; got 1 for 40"):
        report(sources=["a"])
    with pytest.raises(DataError, match="references must have one entry per output"):
        evaluate(["a"], ["a", "b"])
    with pytest.raises(SettingError, match=r"edges must rise from 1; got \[5, 5\]"):
        quality_by_length(["x"], ["x"], ["x"], edges=[5, 5])


def test_summaries_have_rouge_copied_ngrams_and_p_values_of_baselines():
    references = [f"king {n} had {n + 1} sons" for n in range(30)]
    sources = [f"Once {text} . It rained ." for text in references]
    outputs = [f"king {n} had sons had sons" for n in range(30)]
    options = {"sources": sources, "rouge": True, "resamples": 50}
    evaluation = evaluate(
        outputs, references, trivial={"rain": ["It rained ."] * 30, "all": outputs}, **options
    )
    assert [score.name for score in evaluation.scores[:3]] == ["ROUGE-L", "ROUGE-1", "ROUGE-2"]
    assert all(score.margin is not None for score in evaluation.scores[:3])
    rain, same = evaluation.baselines
    assert (rain.p_value, same.p_value) == (pytest.approx(1 / 10_001), 1)
    (table,) = evaluation.tables
    assert table.rows[0] == ("1-grams", 0, 0, pytest.approx(100 / 3), 0)
    assert any("n-grams new to the document" in line for line in evaluation.lines())
    assert "(p = 1.0000)" in str(evaluation)
    assert evaluate(outputs, references, sources=sources, resamples=0).baselines[0].p_value is None


def test_a_comparison_of_summaries_begins_with_rouge():
    references = ["a king ran", "a queen ran"]
    comparison = compare(["a king", "a"], references, references, trials=50, rouge=True)
    names = [score.name for score in comparison.comparisons]
    assert names == ["ROUGE-L", "ROUGE-1", "ROUGE-2", "BLEU", "chrF2"]


COUNT = 60
ANSWERED = [LabelledText(f"text {n}", "ab"[n % 2], None, f"a.tsv:{n}") for n in range(COUNT)]
RIGHT = [LabelPrediction("ab"[n % 2], {"ab"[n % 2]: 1.0}) for n in range(COUNT)]
WRONG = [LabelPrediction("ba"[n % 2], {"ba"[n % 2]: 1.0}) for n in range(COUNT)]


@pytest.fixture
def task():
    task = Classification.__new__(Classification)
    task.labels = ["a", "b"]
    return task


def test_what_is_always_right_is_better_than_what_is_always_wrong(task):
    comparison = compare_answers(task, WRONG, RIGHT, ANSWERED, trials=200)
    by_name = {figure.name: figure for figure in comparison.comparisons}
    assert (by_name["accuracy"].first, by_name["accuracy"].second) == (0.0, 100.0)
    assert by_name["accuracy"].p_value == pytest.approx(1 / 201)
    assert (comparison.better, comparison.worse, comparison.equal) == (COUNT, 0, 0)
    assert len(comparison.differences) == 4


def test_a_lucky_answer_more_is_chance(task):
    almost = [WRONG[0], *RIGHT[1:]]
    comparison = compare_answers(task, almost, RIGHT, ANSWERED, trials=200)
    assert comparison.comparisons[0].p_value > 0.5
    assert (comparison.better, comparison.worse, comparison.equal) == (1, 0, COUNT - 1)
    assert "1 text better, 0 worse, 59 equal" in str(comparison)
    assert comparison.to_dict()["comparisons"][0]["difference"] > 0


def test_the_same_answers_do_not_differ(task):
    comparison = compare_answers(task, RIGHT, RIGHT, ANSWERED, trials=3)
    assert all(figure.p_value == 1 for figure in comparison.comparisons)
    with pytest.raises(DataError, match="must have one answer for each example; got 59 and 60 for"):
        compare_answers(task, RIGHT[1:], RIGHT, ANSWERED)


def test_examples_are_answered_together_and_some_alone():
    calls, done = [], []

    def answer(examples, *, progress=None):
        calls.append(len(examples))
        time.sleep(0.001)  # times are rounded, and none is to be zero
        if progress is not None:
            progress(len(examples))
        return [-one for one in examples]

    answers, speed = answer_timed(
        answer, range(50), device=torch.device("cpu"), progress=done.append
    )
    assert list(answers) == [-one for one in range(50)]
    assert done == [50]
    assert calls[:2] == [1, 50]
    assert set(calls[2:]) == {1}
    assert len(calls) <= 2 + 20
    figures = speed.to_dict()
    assert all(figures[name] > 0 for name in ("per_second", "alone_ms", "peak_mib", "threads"))
    assert f"{speed.per_second:,.1f} a second" in str(speed)


def test_columns_that_lie_otherwise_than_in_training_are_named(tmp_path):
    file = tmp_path / "mine.tsv"
    file.write_text("I love China.\t我爱中国。\tCC-BY\n", "utf-8")
    task = letters_predictor(data={"columns": ["chinese", "english"]}).task
    cure = r"it holds I love China\., .* CC-BY\. Say which .* --set 'data\.columns=\[1,2\]'\.$"
    with pytest.raises(DataError, match=rf"mine\.tsv:1: there is no column 'chinese' .* {cure}"):
        read_data(task, [file])
    (pair,) = read_data(task, [file], columns={"data.columns": [2, 1]}).examples
    assert (pair.source, pair.target) == ("我爱中国。", "I love China.")
    assert task.recipe.data.columns == ("chinese", "english")
    with pytest.raises(SettingError, match=r"--set must be one of data\.columns; got 'data\.col"):
        read_data(task, [file], columns={"data.column": [2, 1]})


class Shares:
    """A task whose answers are right or wrong, or have a figure of their own."""

    def score(self, answers, examples):
        right = [answer == example for answer, example in zip(answers, examples, strict=True)]
        return {"accuracy": 100 * sum(right) / len(right), "rmse": float(sum(answers))}


@pytest.mark.parametrize(
    ("right", "count", "low", "high"),
    [(5, 5, 56.55, 100.0), (0, 5, 0.0, 43.45), (4, 5, 37.55, 96.38), (99, 100, 94.55, 99.82)],
)
def test_proportions_have_wilsons_interval(right, count, low, high):
    answers, examples = [1] * count, [1] * right + [0] * (count - right)
    accuracy, other = _with_intervals(Shares(), answers, examples, random.Random(0))
    assert (accuracy.low, accuracy.high) == pytest.approx((low, high), abs=0.01)
    assert (other.low, other.high) == (count, count)  # no proportion: drawn again


def test_a_result_beside_the_best_baseline_is_a_sentence_of_the_report():
    references = ["I love China .", "Does he love you ?"]
    worse = evaluate(["a b c d", "e f g h"], references, sources=["I love it .", "Does it ?"])
    assert worse.beside == worse.to_dict()["beside"]
    assert worse.beside.startswith("This is below a baseline: the source itself has BLEU ")
    assert f"  {worse.beside}" in str(worse).splitlines()
    better = evaluate(references, references, sources=["I love it .", "Does it ?"])
    assert better.beside.startswith("This is above the best baseline: the source itself has BLEU ")
    same = evaluate(["a b"], ["a b"], sources=["a b"])
    assert same.beside.startswith("This is no better than a baseline: ")


@pytest.mark.parametrize(
    ("sign", "value", "is_below"), [(1, 0.4, True), (1, 0.5, False), (-1, 0.6, True)]
)
def test_below_a_baseline_is_worse_whichever_way_the_figure_goes(sign, value, is_below):
    sentence = beside_baselines("x", value, {"always 1": 0.5}, sign=sign)
    assert ("is below a baseline" in sentence) == is_below
    assert beside_baselines("x", value, {}) is None
