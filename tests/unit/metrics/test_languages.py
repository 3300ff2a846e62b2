import pytest

from regard.metrics import bleu_tokenizer, is_unspaced


@pytest.mark.parametrize(
    ("language", "tokenizer", "unspaced"),
    [
        (None, "13a", False),
        ("en", "13a", False),
        ("de_DE", "13a", False),
        ("zh", "zh", True),
        ("cmn-Hans", "zh", True),
        ("ja", "ja-mecab", True),
        ("ko", "ko-mecab", False),
        ("th", "char", True),
    ],
)
def test_languages(language, tokenizer, unspaced):
    assert bleu_tokenizer(language) == tokenizer
    assert is_unspaced(language) is unspaced
