"""Exact match and F1 against the scripts of SQuAD and CMRC 2018, written again here."""

import re
import string
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.metrics.question_answering import exact_match, f1


def squad_tokens(text):
    """Lower case, punctuation out, articles out, white space: in the order of that program."""
    text = "".join(ch for ch in text.lower() if ch not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def squad_f1(predicted, true):
    predicted_tokens, true_tokens = squad_tokens(predicted), squad_tokens(true)
    if not predicted_tokens or not true_tokens:
        return float(predicted_tokens == true_tokens)
    num_shared = sum((Counter(predicted_tokens) & Counter(true_tokens)).values())
    if num_shared == 0:
        return 0.0
    precision, recall = num_shared / len(predicted_tokens), num_shared / len(true_tokens)
    return 2 * precision * recall / (precision + recall)


def cmrc_f1(predicted, true):
    """Single characters, punctuation out; what is shared is the longest common substring."""
    predicted_tokens, true_tokens = (
        re.findall(r"[\u4e00-\u9fa5]|[A-Za-z0-9]+", t.lower()) for t in (predicted, true)
    )
    table = [[0] * (len(true_tokens) + 1) for _ in range(len(predicted_tokens) + 1)]
    longest = 0
    for i, a in enumerate(predicted_tokens):
        for j, b in enumerate(true_tokens):
            if a == b:
                table[i + 1][j + 1] = table[i][j] + 1
                longest = max(longest, table[i + 1][j + 1])
    if longest == 0:
        return 0.0
    precision, recall = longest / len(predicted_tokens), longest / len(true_tokens)
    return 2 * precision * recall / (precision + recall)


def texts_of(parts):
    return st.lists(st.sampled_from(parts), max_size=10).map("".join)


ENGLISH = texts_of([*"ab AB", " the ", " an ", ".", ",", "'", "1"])


@given(ENGLISH, ENGLISH)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_english_is_squads(given_text, right):
    assert f1(given_text, [right]) == pytest.approx(squad_f1(given_text, right))
    assert exact_match(given_text, [right]) == (squad_tokens(given_text) == squad_tokens(right))


CHINESE = texts_of([*"泡堂爱中，。《", "a1"])


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(CHINESE, CHINESE.map(lambda text: f"中{text}"))
def test_chinese_is_cmrcs(given_text, right):
    assert f1(given_text, [right]) == pytest.approx(cmrc_f1(given_text, right))


def test_the_nearest_of_several_right_answers_counts():
    assert f1("black cat", ["dog", "the cat", "a black cat!"]) == 1.0
    assert exact_match("cat", ["dog", "The cat."]) == 1.0
    assert f1("black cat", ["cat"]) == pytest.approx(2 / 3)


def test_no_answer_is_right_where_there_is_none():
    assert (exact_match("", []), f1("", [])) == (1.0, 1.0)
    assert (exact_match("cat", []), f1("cat", [])) == (0.0, 0.0)
    assert (exact_match("", ["cat"]), f1("", ["cat"])) == (0.0, 0.0)


def test_chinese_runs_must_hang_together():
    assert f1("中爱国", ["中国"]) == pytest.approx(2 / 5)  # one character, not two
