import pytest

from regard.text.reading.encodings import GuessedEncodingWarning, as_utf8, guess_encoding


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
