"""Signs that a text went through the wrong encoding, or kept markup."""

import html
import re
import unicodedata

# UTF-8 read as Latin-1 or Windows-1252: a lead byte, then continuation bytes as those show them.
_CONTINUATION = "\u0080-\u00bf" + "".join(
    bytes([code]).decode("cp1252")
    for code in range(0x80, 0xA0)
    if code not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
)
_MISREAD_LATIN = re.compile(f"[\u00c2-\u00f4][{_CONTINUATION}]+")
_RUN = re.compile("[^\u0000-\u007f]{3,}")
_HAN_OR_KANA = re.compile("[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
# The 3,755 most used Han characters of GB 2312, its rows 16 to 55, and its signs, 1 to 3.
_COMMON_HAN = re.compile(rb"[\xb0-\xd7\xa1-\xa3][\xa1-\xfe]")
# Besides letters, what Latin texts have of Windows-1252.
_SIGNS = "‘’“”–—…€£°«»¿¡\xa0"
_REPLACED = re.compile("\ufffd|锟斤拷|烫烫烫|屯屯屯|ï¿½")
_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-fA-F]+|[a-zA-Z]{2,8});")
_TAG = re.compile(r"</?[a-zA-Z][a-zA-Z0-9]*(?: [^<>]*)?/?>")


def guess_encoding(line: bytes) -> str | None:
    """The encoding that a line which is not UTF-8 may be in; None where nothing speaks for one.

    Example:
        >>> guess_encoding("我爱中国".encode("gbk")), guess_encoding("café".encode("cp1252"))
        ('GB18030', 'WINDOWS-1252')
        >>> guess_encoding("我爱".encode("utf-16")), guess_encoding(bytes([0xE6, 0x88]))
        ('UTF-16', None)
    """
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    beyond = sum(byte >= 0x80 for byte in line)
    if 2 * len(_COMMON_HAN.findall(line)) > beyond / 2 and _decodes(line, "gb18030"):
        return "GB18030"
    if beyond > len(line) / 3 or not _decodes(line, "cp1252"):
        return None
    signs = [char for char in line.decode("cp1252") if not char.isascii()]
    return "WINDOWS-1252" if all(char.isalpha() or char in _SIGNS for char in signs) else None


def misreading(text: str) -> str | None:
    """What shows that ``text`` was decoded wrongly; None if nothing does.

    Example:
        >>> misreading("ein schÃ¶ner Tag")
        "'Ã¶' should be 'ö'"
        >>> misreading("鎴戠埍浣犱滑")
        "'鎴戠埍浣犱滑' should be '我爱你们'"
        >>> misreading("我爱中国"), misreading("Ärger")
        (None, None)
    """
    if text.isascii():
        return None
    if found := _REPLACED.search(text):
        return f"{found[0]!r} stands for characters that were lost"
    for found in _MISREAD_LATIN.finditer(text):
        if meant := _as_utf8(found[0], "cp1252") or _as_utf8(found[0], "latin-1"):
            return f"{found[0]!r} should be {meant!r}"
    for found in _RUN.finditer(text):
        meant = _as_utf8(found[0], "gb18030")
        if meant and len(_HAN_OR_KANA.findall(meant)) == len(meant):
            return f"{found[0]!r} should be {meant!r}"
    return None


def stray_character(text: str) -> str | None:
    r"""The first control, private-use or unassigned character of a normalised text, named.

    Example:
        >>> stray_character("caf\x92"), stray_character("fine")
        ('U+0092', None)
    """
    if text.isascii() and text.isprintable():
        return None
    for char in text:
        if unicodedata.category(char) in ("Cc", "Co", "Cn"):
            return f"U+{ord(char):04X}"
    return None


def markup(text: str) -> str | None:
    """The first HTML entity or tag in ``text``.

    Example:
        >>> markup("bread &amp; butter"), markup("a<br>b"), markup("AT&T; x < y"), markup("a & b")
        ('&amp;', '<br>', None, None)
    """
    for pattern in (_ENTITY, _TAG):
        found = pattern.search(text)
        if found and (pattern is _TAG or html.unescape(found[0]) != found[0]):
            return found[0]
    return None


def _decodes(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _as_utf8(text: str, encoding: str) -> str | None:
    try:
        return text.encode(encoding).decode("utf-8")
    except UnicodeError:
        return None
