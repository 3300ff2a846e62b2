"""Figures of one system over a corpus: sacrebleu's metrics, and exact match."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from regard.checks import check_count, choose
from regard.errors import SettingError
from regard.metrics.score import (
    SEED,
    MetricScore,
    References,
    answers,
    draw,
    floored,
    interval,
    num_references,
    streams,
)

if TYPE_CHECKING:  # sacrebleu takes longer to import than a line to translate
    from sacrebleu.metrics.base import Metric
    from sacrebleu.metrics.bleu import BLEU

# Han characters are counted one by one where no spaces separate words.
_HAN = {"zh", "zho", "chi", "cmn", "yue", "lzh"}
_MORPHEMES = {"ja": "ja-mecab", "jpn": "ja-mecab", "ko": "ko-mecab", "kor": "ko-mecab"}
_UNSPACED = {"th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo", "bod"}


def bleu(
    hypotheses: Sequence[str],
    references: References,
    *,
    target_language: str | None = None,
    lowercase: bool = False,
    tokenize: str | None = None,
    resamples: int = 0,
) -> MetricScore:
    """Corpus BLEU (Papineni et al., 2002) of detokenised text, as sacrebleu computes it.

    Post (2018), https://arxiv.org/abs/1804.08771. *Tokenised lower-cased* BLEU, the measure of
    many older papers, is ``lowercase=True``, with ``tokenize="none"`` where the text is already cut
    into words by the paper's tokenizer.

    Args:
        hypotheses: The outputs.
        references: One right answer of each, or several; their number may differ.
        target_language: Code of their language; picks the tokenizer, ``zh`` for Chinese.
        lowercase: Compare without case.
        tokenize: A tokenizer of sacrebleu by name; None goes by the language.
        resamples: Bootstrap resamples for the interval. None are drawn for 0, and fewer than asked
            where more than 5,000 sentences make them large.

    Raises:
        DataError: Outputs and references do not pair up.
        SettingError: No such tokenizer, or its package is not installed.

    Example:
        >>> print(bleu(["the cat sat on the mat"], ["the cat sat on the mat"]))
        BLEU 100.00 (nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:...)
    """
    metric = bleu_metric(
        hypotheses, references, target_language, lowercase=lowercase, tokenize=tokenize
    )
    return _score(metric, hypotheses, resamples)


def bleu_metric(
    hypotheses: Sequence[str],
    references: References,
    target_language: str | None,
    *,
    lowercase: bool = False,
    tokenize: str | None = None,
) -> "BLEU":
    """The BLEU of sacrebleu with these references in it."""
    from sacrebleu.metrics.bleu import BLEU

    name = tokenize or bleu_tokenizer(target_language)
    choose("tokenize", name, dict.fromkeys(BLEU.TOKENIZERS))
    try:
        return BLEU(
            lowercase=lowercase,
            tokenize=name,
            force=True,  # no warning about tokenised text: tokenize="none" is how one says so
            references=streams(hypotheses, references),
        )
    except (ImportError, RuntimeError) as error:
        raise SettingError(
            f"tokenize must name an installed tokenizer; got {name!r}: {error} "
            'Use tokenize="char" to count characters instead.'
        ) from error


def chrf(hypotheses: Sequence[str], references: References, *, resamples: int = 0) -> MetricScore:
    """Corpus chrF (Popović, 2015): F-score of character n-grams, which needs no tokenizer.

    Arguments are those of `bleu`, and so is its DataError.

    Example:
        >>> print(chrf(["我爱中国。"], [["我爱中国。", "我热爱中国。"]]))
        chrF2 100.00 (nrefs:2|case:mixed|eff:yes|nc:6|nw:0|space:no|version:...)
    """
    from sacrebleu.metrics.chrf import CHRF

    metric = CHRF(references=streams(hypotheses, references))
    return _score(metric, hypotheses, resamples)


def exact_match(
    hypotheses: Sequence[str], references: References, *, resamples: int = 0
) -> MetricScore:
    """The share of outputs that equal one of their right answers, but for space around them.

    Arguments are those of `bleu`, and so is its DataError.

    Example:
        >>> exact_match(["Run! ", "Go."], [["Run!", "Run."], "Come."]).value
        50.0
    """
    streams(hypotheses, references)
    right = [
        one.strip() in {answer.strip() for answer in targets}
        for one, targets in zip(hypotheses, answers(references), strict=True)
    ]
    check_count("resamples", resamples, 0)
    share = sum(right) / len(right)
    signature = f"nrefs:{num_references(references)}|case:mixed|space:trimmed"
    mean = margin = None
    if resamples:
        # Resampling a share is drawing from a binomial.
        drawn = np.random.default_rng(SEED).binomial(len(right), share, resamples) / len(right)
        mean, margin = (100 * figure for figure in interval(drawn))
        margin = floored(margin, 100 * share, len(right))
        signature = f"{signature}|bs:{resamples}|seed:{SEED}"
    return MetricScore(
        name="exact match", value=100 * share, signature=signature, mean=mean, margin=margin
    )


def sentence_chrf(hypotheses: Sequence[str], references: References) -> list[float]:
    """How well each output does by itself, by chrF: which to read first.

    Example:
        >>> sentence_chrf(["a b", "xyz"], ["a b", "abc"])
        [100.0, 0.0]
    """
    from sacrebleu.metrics.chrf import CHRF

    streams(hypotheses, references)
    metric = CHRF()
    return [
        float(metric.sentence_score(one, right).score)
        for one, right in zip(hypotheses, answers(references), strict=True)
    ]


def _score(metric: "Metric", hypotheses: Sequence[str], resamples: int) -> MetricScore:
    check_count("resamples", resamples, 0)
    score = metric.corpus_score(hypotheses, None)
    signature, mean, margin = str(metric.get_signature()), None, None
    details: dict[str, float] = {}
    if score.name == "BLEU":
        details = {"brevity_penalty": score.bp, "length_ratio": score.ratio}
        details |= {f"precision_{n}": float(p) for n, p in enumerate(score.precisions, start=1)}
    if resamples:
        drawn = draw({"system": hypotheses}, {score.name: metric}, "bs", resamples)
        signature, (result,) = drawn[score.name]
        mean = float(result.mean or 0.0)
        margin = floored(float(result.ci or 0.0), float(score.score), len(hypotheses))
    return MetricScore(
        name=score.name,
        value=float(score.score),
        signature=signature,
        mean=mean,
        margin=margin,
        details=details,
    )


def base(language: str) -> str:
    """The language without script or country: ``zh`` of ``zh-Hans_CN``."""
    return language.replace("_", "-").split("-")[0].lower()


def is_unspaced(language: str | None) -> bool:
    """Whether the language is written without spaces between words.

    Example:
        >>> [is_unspaced(language) for language in ("zh-Hans_CN", "ja", "ko", "de", None)]
        [True, True, False, False, False]
    """
    code = base(language or "")
    return code in _HAN or code in _UNSPACED or _MORPHEMES.get(code) == "ja-mecab"


def bleu_tokenizer(language: str | None) -> str:
    """The sacrebleu tokenizer for BLEU in this language.

    Example:
        >>> bleu_tokenizer("zh-CN"), bleu_tokenizer("de"), bleu_tokenizer("ja")
        ('zh', '13a', 'ja-mecab')
    """
    code = base(language or "")
    if code in _HAN:
        return "zh"
    if code in _UNSPACED:
        return "char"
    return _MORPHEMES.get(code, "13a")
