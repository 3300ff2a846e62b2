"""Public metrics of translation, thinly wrapped: a figure comes with how it was computed."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.metrics.alignment import AlignmentCounts as AlignmentCounts
    from regard.metrics.alignment import alignment_error_rate as alignment_error_rate
    from regard.metrics.alignment import count_links as count_links
    from regard.metrics.corpus import bleu as bleu
    from regard.metrics.corpus import bleu_tokenizer as bleu_tokenizer
    from regard.metrics.corpus import chrf as chrf
    from regard.metrics.corpus import exact_match as exact_match
    from regard.metrics.corpus import is_unspaced as is_unspaced
    from regard.metrics.corpus import sentence_chrf as sentence_chrf
    from regard.metrics.paired import compare as compare
    from regard.metrics.paired import compare_rouge as compare_rouge
    from regard.metrics.rouge import novelty as novelty
    from regard.metrics.rouge import repetition as repetition
    from regard.metrics.rouge import rouge_l as rouge_l
    from regard.metrics.rouge import rouge_n as rouge_n
    from regard.metrics.rouge import sentence_rouge_l as sentence_rouge_l
    from regard.metrics.rouge import sentence_rouge_n as sentence_rouge_n
    from regard.metrics.score import MetricScore as MetricScore
    from regard.metrics.score import References as References
    from regard.metrics.score import SystemComparison as SystemComparison
    from regard.metrics.score import answers as answers

__getattr__ = _names(__name__, __file__)
