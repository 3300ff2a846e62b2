import pytest

from regard.text.languages import guess_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("我昨天和他一起去了北京。", "zh"),
        ("私は昨日、彼と一緒に東京へ行きました。", "ja"),
        ("나는 어제 그와 함께 서울에 갔다.", "ko"),
        ("Я вчера ездил с ним в Москву.", "ru"),
        ("The man and the woman are not in the house.", "en"),
        ("Der Mann und die Frau sind nicht auf der Straße.", "de"),
        ("L'homme et la femme ne sont pas dans la maison.", "fr"),
        ("El hombre y la mujer no están en la casa.", "es"),
        ("De man en de vrouw zijn niet op het plein.", "nl"),
        ("12 345 — !?", None),
        ("", None),
    ],
)
def test_languages_are_known_by_letters_or_little_words(text: str, language: str | None) -> None:
    assert guess_language([text] * 3) == language


def test_chinese_may_quote_a_little_japanese() -> None:
    assert guess_language(["他说「の」是一个日文的字，我不知道是什么意思。"]) == "zh"
