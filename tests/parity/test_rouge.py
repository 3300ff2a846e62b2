"""ROUGE against Google's."""

from functools import partial

import pytest
from rouge_score import rouge_scorer
from tests.unit.metrics.test_rouge import texts

from regard.metrics import rouge_l, rouge_n, sentence_rouge_l, sentence_rouge_n

pytestmark = [pytest.mark.parity, pytest.mark.slow]

WAYS = {
    "rougeL": (sentence_rouge_l, rouge_l),
    "rouge1": (partial(sentence_rouge_n, n=1), partial(rouge_n, n=1)),
    "rouge2": (partial(sentence_rouge_n, n=2), partial(rouge_n, n=2)),
}


@pytest.mark.parametrize("kind", WAYS)
def test_the_figure_is_that_of_rouge_score(kind):
    of_each, of_all = WAYS[kind]
    scorer = rouge_scorer.RougeScorer([kind])
    outputs, first, second = (texts(seed, 40) for seed in (1, 2, 3))
    references = list(zip(first, second, strict=True))
    scores = of_each(outputs, references)
    for output, answers, value in zip(outputs, references, scores, strict=True):
        expected = max(scorer.score(answer, output)[kind].fmeasure for answer in answers)
        assert value == pytest.approx(100 * expected)
    assert len(set(scores)) > 10
    assert of_all(outputs, references).value == pytest.approx(sum(scores) / len(scores))
