"""Whether one run's answers are better than another's."""

import pytest

from regard.errors import DataError
from regard.inference.comparison import compare_answers
from regard.tasks.classification import Classification, LabelledText
from regard.tasks.label_task import certain

COUNT = 60
EXAMPLES = [LabelledText(f"text {n}", "ab"[n % 2], None, f"a.tsv:{n}") for n in range(COUNT)]
RIGHT = [certain("ab"[n % 2]) for n in range(COUNT)]
WRONG = [certain("ba"[n % 2]) for n in range(COUNT)]


@pytest.fixture
def task():
    found = Classification.__new__(Classification)
    found.labels = ["a", "b"]
    return found


def test_what_is_always_right_is_better_than_what_is_always_wrong(task):
    found = compare_answers(task, WRONG, RIGHT, EXAMPLES, trials=200)
    by_name = {one.name: one for one in found.comparisons}
    assert (by_name["accuracy"].first, by_name["accuracy"].second) == (0.0, 100.0)
    assert by_name["accuracy"].p_value == pytest.approx(1 / 201)
    assert (found.better, found.worse, found.equal) == (COUNT, 0, 0)
    assert len(found.differences) == 4


def test_a_lucky_answer_more_is_chance(task):
    almost = [WRONG[0], *RIGHT[1:]]
    found = compare_answers(task, almost, RIGHT, EXAMPLES, trials=200)
    assert found.comparisons[0].p_value > 0.5
    assert (found.better, found.worse, found.equal) == (1, 0, COUNT - 1)
    assert "1 texts better, 0 worse, 59 equal" in str(found)
    assert found.to_dict()["comparisons"][0]["difference"] > 0


def test_the_same_answers_do_not_differ(task):
    found = compare_answers(task, RIGHT, RIGHT, EXAMPLES, trials=3)
    assert all(one.p_value == 1 for one in found.comparisons)
    with pytest.raises(DataError, match="must have one answer for each example; got 59 and 60 for"):
        compare_answers(task, RIGHT[1:], RIGHT, EXAMPLES)
