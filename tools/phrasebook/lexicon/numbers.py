"""Numbers in both languages: words up to twelve in English, figures above.

Chinese writes 两 for two of a thing, and 二 inside larger numbers and dates.
"""

from tools.phrasebook.grammar import Unit, word

_DIGITS = "零一二三四五六七八九"
_ENGLISH = tuple(
    "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
)


def chinese_number(number: int) -> str:
    """A number below 10,000 in Chinese.

    Example:
        >>> [chinese_number(n) for n in (2, 10, 12, 25, 100, 150, 205, 2000)]
        ['二', '十', '十二', '二十五', '一百', '一百五十', '二百零五', '两千']
    """
    if number >= 1000:
        head = "两" if number // 1000 == 2 else _DIGITS[number // 1000]
        rest = number % 1000
        return head + "千" + (("零" if rest < 100 else "") + chinese_number(rest) if rest else "")
    if number >= 100:
        rest = number % 100
        tail = "零" + _DIGITS[rest] if 0 < rest < 10 else _tens(rest, leading=True)
        return _DIGITS[number // 100] + "百" + tail
    return _tens(number, leading=False) or _DIGITS[0]


def _tens(number: int, *, leading: bool) -> str:
    if number < 10:
        return _DIGITS[number] if number else ""
    tens = _DIGITS[number // 10] if number >= 20 or leading else ""
    return tens + "十" + (_DIGITS[number % 10] if number % 10 else "")


def english_number(number: int) -> str:
    """A number in English: a word up to twelve, a figure above.

    Example:
        >>> english_number(12), english_number(13)
        ('twelve', '13')
    """
    return _ENGLISH[number] if number < len(_ENGLISH) else str(number)


def count(number: int) -> Unit:
    """A number that counts things: 两 for two.

    Example:
        >>> count(2).zh, count(15).en
        (('两',), ('15',))
    """
    chinese = "两" if number == 2 else chinese_number(number)
    return word(chinese, english_number(number), person="singular" if number == 1 else "plural")


def year(number: int) -> Unit:
    """A year, read figure by figure in Chinese.

    Example:
        >>> year(1995).zh
        ('一九九五年',)
    """
    return word("".join(_DIGITS[int(figure)] for figure in str(number)) + "年", str(number))
