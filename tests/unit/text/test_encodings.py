import pytest

from regard.text.languages import markup, misreading, stray_character
from regard.text.reading.encodings import (
    GuessedEncodingWarning,
    as_utf8,
    guess_encoding,
)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("schöner Tag", "cp1252"),
        ("schöner Tag", "latin-1"),
        ("it’s ‘fine’", "cp1252"),
        ("Это по-русски", "latin-1"),
        ("我爱中国", "latin-1"),
        ("我爱中国", "gb18030"),
        ("他们在学校学", "gb18030"),
    ],
)
def test_utf8_read_as_something_else_is_found(text, encoding):
    read_wrongly = text.encode().decode(encoding)
    assert "should be" in misreading(f"x {read_wrongly} y")
    assert misreading(text) is None


@pytest.mark.parametrize("text", ["a\ufffdb", "锟斤拷锟斤拷", "ï¿½"])
def test_lost_characters_are_found(text):
    assert "lost" in misreading(text)


@pytest.mark.parametrize(
    "text",
    [
        "Ärger à la carte",
        "联通",
        "À ÉTÉ",
        "naïve café",
        "«Ça va?»",
        "中国人民解放军",
        "Â",
        "Ünïcödé",
    ],
)
def test_honest_text_is_not_suspected(text):
    assert misreading(text) is None


@pytest.mark.parametrize(
    ("text", "encoding", "guess"),
    [
        ("Der „süße“ Käse größer als 5 €", "cp1252", "WINDOWS-1252"),
        ("L’été à Noël, ça va naïf œuf ?", "cp1252", "WINDOWS-1252"),
        ("¿Dónde está el niño? ¡Qué día!", "cp1252", "WINDOWS-1252"),
        ("På måndag går vi över ån", "cp1252", "WINDOWS-1252"),
        ("Příliš žlutý kůň úpěl včera", "cp1250", None),
        ("Zażółć gęślą jaźń, że był już", "cp1250", None),
        ("Şimdi güzel ığdır’da öğrenciler", "cp1254", None),
        ("Я вышел из дома", "cp1251", None),
    ],
)
def test_western_text_is_known_by_its_letters(text, encoding, guess):
    assert guess_encoding(text.encode(encoding, "replace")) == guess


def test_a_western_file_is_read_with_a_warning_and_one_odd_line_is_none():
    lines = ["schöner Tag\n".encode("cp1252")] * 3
    with pytest.warns(GuessedEncodingWarning, match=r"read as WINDOWS-1252, in which .*schöner"):
        assert [*as_utf8(lines, "a.txt")] == ["schöner Tag\n".encode()] * 3
    mixed = [*lines, "schöner Tag\n".encode()]
    assert [*as_utf8(mixed, "a.txt")] == mixed
    assert [*as_utf8(lines[:1], "a.txt")] == lines[:1]


def test_stray_characters_are_named():
    assert stray_character("it\x92s") == "U+0092"
    assert stray_character("a\x00b") == "U+0000"
    assert stray_character("\ue5d2") == "U+E5D2"
    assert stray_character("é 我 👩‍🚀 e\u0301") is None


def test_markup_is_entities_and_tags():
    assert markup("stone &amp; tile") == "&amp;"
    assert markup("it&#39;s") == "&#39;"
    assert markup('<a href="x">y</a>') == '<a href="x">'
    assert markup("R&D; 3 < 4 > 2; <3") is None
