"""Public metrics of translation, thinly wrapped: a figure comes with how it was computed."""

from regard.metrics.alignment import AlignmentCounts, alignment_error_rate, count_links
from regard.metrics.corpus import (
    bleu,
    bleu_tokenizer,
    chrf,
    exact_match,
    is_unspaced,
    sentence_chrf,
)
from regard.metrics.paired import compare, compare_rouge
from regard.metrics.rouge import (
    novelty,
    repetition,
    rouge_l,
    rouge_n,
    sentence_rouge_l,
    sentence_rouge_n,
)
from regard.metrics.score import MetricScore, References, SystemComparison, answers

__all__ = [
    "AlignmentCounts",
    "MetricScore",
    "References",
    "SystemComparison",
    "alignment_error_rate",
    "answers",
    "bleu",
    "bleu_tokenizer",
    "chrf",
    "compare",
    "compare_rouge",
    "count_links",
    "exact_match",
    "is_unspaced",
    "novelty",
    "repetition",
    "rouge_l",
    "rouge_n",
    "sentence_chrf",
    "sentence_rouge_l",
    "sentence_rouge_n",
]
