"""Tokenizers of metrics by target language."""

# Han characters are counted one by one where no spaces separate words.
_HAN = {"zh", "zho", "chi", "cmn", "yue", "lzh"}
_MORPHEMES = {"ja": "ja-mecab", "jpn": "ja-mecab", "ko": "ko-mecab", "kor": "ko-mecab"}
_UNSPACED = {"th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo", "bod"}


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
