import math
from collections import Counter

import pytest

from regard.errors import DataError, SettingError
from regard.metrics import bleu, chrf, exact_match, rouge_l, sentence_chrf

OUTPUTS = ["the dog sleeps on the old sofa now", "A man rides a red bike .", "nothing at all"]
REFERENCES = [
    ["the dog is asleep on the old sofa", "a dog sleeps on the old sofa now"],
    "A man rides his red bike .",
    ("something else", "nothing at all", "nothing"),
]


def ngrams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def bleu_by_hand(outputs, references):
    """Papineni et al. (2002), section 2.3, over words split at spaces."""
    matched, total, out_length, ref_length = [0] * 4, [0] * 4, 0, 0
    for output, answers in zip(outputs, references, strict=True):
        words = output.split()
        known = [one.split() for one in ([answers] if isinstance(answers, str) else answers)]
        out_length += len(words)
        ref_length += min((abs(len(one) - len(words)), len(one)) for one in known)[1]
        for n in range(1, 5):
            for ngram, count in ngrams(words, n).items():
                total[n - 1] += count
                matched[n - 1] += min(count, max(ngrams(one, n)[ngram] for one in known))
    precision = sum(math.log(m / t) for m, t in zip(matched, total, strict=True)) / 4
    return 100 * math.exp(precision + min(0.0, 1 - ref_length / out_length))


def test_bleu_is_the_formula_with_differing_numbers_of_references():
    score = bleu(OUTPUTS, REFERENCES)
    assert score.value == pytest.approx(bleu_by_hand(OUTPUTS, REFERENCES))
    assert {"nrefs:var", "tok:13a"} <= {*score.signature.split("|")}
    assert score.details["brevity_penalty"] == pytest.approx(1.0)
    assert score.margin is None


@pytest.mark.parametrize("language", ["zh", "zh-CN", "ZH_Hant", "lzh", "yue"])
def test_chinese_is_counted_by_characters(language):
    score = bleu(["我很爱中国。"], ["我最爱中国。"], target_language=language)
    assert "tok:zh" in score.signature
    assert score.value == pytest.approx(bleu_by_hand(["我 很 爱 中 国 。"], ["我 最 爱 中 国 。"]))


def test_tokenised_lower_cased_bleu():
    outputs, references = ["A Man rides his red bike"], ["a man rides his Red bike"]
    cased = bleu(outputs, references, tokenize="none")
    lowered = bleu(outputs, references, tokenize="none", lowercase=True)
    assert cased.value < lowered.value
    assert lowered.value == pytest.approx(100)
    assert "case:lc" in lowered.signature
    assert "tok:none" in lowered.signature
    assert bleu(["Hi, you two!"], ["Hi , you two !"], tokenize="13a").value == pytest.approx(100)
    assert bleu(["Hi, you two!"], ["Hi , you two !"], tokenize="none").value < 50


@pytest.mark.parametrize(("output", "value"), [("a b c d", 100), ("x y z w", 0)])
@pytest.mark.parametrize("metric", [bleu, chrf, exact_match, rouge_l])
def test_of_few_outputs_that_are_all_alike_the_interval_has_a_width(metric, output, value):
    five, many = (
        metric([output] * count, ["a b c d"] * count, resamples=200) for count in (5, 500)
    )
    assert five.value == pytest.approx(value)
    assert five.margin == pytest.approx(21.7, abs=0.1)  # half of Wilson's 56.6 to 100
    assert 0 < many.margin < 0.5


@pytest.mark.parametrize("metric", [bleu, chrf, exact_match])
def test_resamples_give_an_interval_that_narrows_with_the_corpus(metric):
    few, many = (metric(OUTPUTS * times, REFERENCES * times, resamples=200) for times in (10, 160))
    assert "bs:200" in few.signature
    assert few.margin / many.margin == pytest.approx(4, rel=0.4)
    assert abs(many.mean - many.value) < few.margin
    assert few == metric(OUTPUTS * 10, REFERENCES * 10, resamples=200)
    plain = few.to_dict()
    assert set(plain) == {"name", "value", "signature", "mean", "margin", "details"}
    assert type(plain["mean"]) is type(plain["value"]) is float


def test_an_empty_output_is_counted_as_wrong_and_every_reference_counts():
    assert chrf(["a b c d"], [["x y z w", "a b c d"]]).value == pytest.approx(100)
    score = exact_match([" a ", "b", "C"], ["a", ["x", "b"], "c"])
    assert score.value == pytest.approx(200 / 3)
    assert score.signature == "nrefs:var|case:mixed|space:trimmed"
    assert exact_match(["", "b"], ["a", "b"]).value == 50
    assert bleu(["", OUTPUTS[0]], ["a", OUTPUTS[0]]).value > 0
    assert sentence_chrf(["", "b"], ["a", "b"])[0] == 0


@pytest.mark.parametrize("metric", [bleu, chrf, exact_match, sentence_chrf])
@pytest.mark.parametrize(
    ("outputs", "references", "message"),
    [
        (["a", "b"], ["a"], "references must have one entry per output; got 1 for 2 outputs"),
        ([], [], "hypotheses must hold at least one output; got none"),
        (["a"], [[]], r"references\[0\] must hold at least one answer; got none"),
    ],
)
def test_what_does_not_pair_up_is_refused(metric, outputs, references, message):
    with pytest.raises(DataError, match=message):
        metric(outputs, references)


def test_an_unknown_tokenizer_is_named():
    with pytest.raises(SettingError, match=r"tokenize must be one of .*; got '13b'"):
        bleu(["a"], ["a"], tokenize="13b")


def test_a_tokenizer_that_is_not_installed_is_named():
    pytest.importorskip("sacrebleu")
    try:
        import MeCab  # noqa: F401
    except ImportError:
        with pytest.raises(SettingError, match="tokenize must name an installed tokenizer"):
            bleu(["犬"], ["犬"], target_language="ja")
    else:
        assert bleu(["犬"], ["犬"], target_language="ja").value >= 0
