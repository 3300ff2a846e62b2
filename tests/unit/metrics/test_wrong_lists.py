"""Lists that do not pair up, and a text where a list of them belongs, are named."""

import pytest

from regard import metrics
from regard.errors import DataError, SettingError
from regard.metrics import labels, question_answering

OF_OUTPUTS = {
    "bleu": {},
    "chrf": {},
    "exact_match": {},
    "rouge_l": {},
    "rouge_n": {"n": 1},
    "sentence_chrf": {},
    "sentence_rouge_l": {},
    "sentence_rouge_n": {"n": 1},
}


@pytest.mark.parametrize("name", OF_OUTPUTS)
@pytest.mark.parametrize(
    ("outputs", "references", "message"),
    [
        (
            "a cat",
            ["a cat"],
            r"hypotheses must be a list; got 'a cat'\. Put it into a list: \['a c",
        ),
        (["a cat"], "a cat", r"references must be a list; got 'a cat'\. Put it into a list"),
        (["a", "b"], ["a"], r"references must have one entry per output; got 1 for 2 outputs"),
        ([1], ["a"], r"hypotheses\[0\] must be text; got 1"),
        (["a"], [[None]], r"references\[0\]\[0\] must be text; got None"),
        (["a"], [3], r"references\[0\] must be a list; got 3"),
        (None, ["a"], "hypotheses must be a list; got None"),
        ({"a": 1}, ["a"], "hypotheses must be a list; got a dict"),
        ([], [], "hypotheses must hold at least one output; got none"),
    ],
)
def test_outputs_and_references_are_lists_of_texts(name, outputs, references, message):
    with pytest.raises(DataError, match=message):
        getattr(metrics, name)(outputs, references, **OF_OUTPUTS[name])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: metrics.novelty(["a"], ["a", "b"], n=1),
            "sources must be as many as outputs; got 2",
        ),
        (lambda: metrics.novelty("a", ["a"], n=1), "outputs must be a list; got 'a'"),
        (lambda: metrics.repetition("a a", n=1), "outputs must be a list; got 'a a'"),
        (lambda: metrics.compare(["a"], "a", ["a"]), "second must be a list; got 'a'"),
        (
            lambda: metrics.alignment_error_rate([[]], []),
            "predicted must be as many as sure; got 1",
        ),
        (lambda: labels.accuracy("ab", ["a", "b"]), "predicted must be a list; got 'ab'"),
        (lambda: labels.macro_f1(["a"], []), "labels must be as many as are right; got 1 for 0"),
        (
            lambda: labels.entity_scores([["O"]], []),
            "predicted must be as many as true; got 1 and 0",
        ),
        (lambda: question_answering.f1("a", "a"), "references must be a list; got 'a'"),
    ],
)
def test_lists_that_do_not_pair_up_are_named(call, message):
    with pytest.raises(DataError, match=message):
        call()


def test_numbers_of_metrics_are_checked():
    with pytest.raises(SettingError, match=r"n must be a whole number; got 1\.5"):
        metrics.rouge_n(["a"], ["a"], n=1.5)
    with pytest.raises(SettingError, match="resamples must be at least 0; got -1"):
        metrics.bleu(["a"], ["a"], resamples=-1)
    with pytest.raises(SettingError, match="trials must be at least 1; got 0"):
        metrics.compare(["a"], ["a"], ["a"], trials=0)
