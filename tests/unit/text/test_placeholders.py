"""Markup as signs: the same on both sides, and back in the output."""

import pytest

from regard.errors import RunError, SettingError
from regard.text import (
    TokenizerConfig,
    load_pair_tokenizer,
    train_pair_tokenizer,
    train_tokenizer,
)
from regard.text.placeholders import SIGNS, hold, is_intact, put_back

ENGLISH = "Use :func:`open` or ``open()``, see `PEP 8 <https://peps.python.org>`_ and *mode*."
CHINESE = "使用 ``open()`` 或 :func:`open` ， *mode* 参见 `PEP 8 <https://peps.python.org>`_ 。"


def test_both_sides_of_a_pair_have_the_same_signs_in_their_own_order() -> None:
    one, other = hold(ENGLISH, "rst"), hold(CHINESE, "rst")
    assert one.spans == other.spans
    assert len(one.spans) == 4
    assert "`" not in one.text + other.text
    assert put_back(other.text, one) == CHINESE


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("a ``b`` `c`_ `d`__", ["``b``", "`c`_", "`d`__"]),
        (":py:meth:`str.join` and |version|", [":py:meth:`str.join`", "|version|"]),
        ("*x* is 2 * 3 * 4, **k.v** and a*b*c", ["*x*", "**k.v**"]),
        ("`no markup` and a|b|c d", ["|b|"]),
    ],
)
def test_what_counts_as_restructured_text(text, spans) -> None:
    assert sorted(hold(text, "rst").spans.values()) == sorted(spans)


def test_tags_and_entities_are_held() -> None:
    held = hold('<b class="x">a &lt; b</b> 1 < 2', "xml")
    assert sorted(held.spans.values()) == ["&lt;", "</b>", '<b class="x">']


def test_a_sign_that_a_text_holds_stands_for_nothing() -> None:
    held = hold("① Use ``a``.", "rst")
    assert held.spans == {"②": "``a``"}
    assert put_back("① 用 ② 。", held) == "① 用 ``a`` 。"


def test_what_there_is_no_sign_for_stays() -> None:
    text = " ".join(f"``{number:02}``" for number in range(len(SIGNS) + 2))
    assert hold(text, "rst").text.endswith("⑳ ``20`` ``21``")


def test_the_output_has_each_span_as_often_as_its_source() -> None:
    source = "Give ``a`` and ``a`` or ``b``."
    held = hold(source, "rst")
    for output in ("①、① 或 ②", "②", "", "① ① ① ② ②", "② ③ ①"):
        assert is_intact(put_back(output, held), source, "rst"), output
    assert put_back("把 ② 给 ①。", held) == "把 ``b`` 给 ``a``。 ``a``"


@pytest.mark.parametrize("kind", ["words", "bpe"])
@pytest.mark.parametrize("shared", [True, False])
def test_a_pair_of_tokenizers_reads_signs_and_keeps_that(tmp_path, kind, shared) -> None:
    settings = TokenizerConfig(type=kind, shared=shared, placeholders="rst")
    pair = train_pair_tokenizer([ENGLISH] * 3, [CHINESE] * 3, settings)
    pair.save(tmp_path)
    loaded = load_pair_tokenizer(tmp_path)
    assert loaded.is_shared == shared
    for tokenizer in (pair, loaded):
        assert tokenizer.is_alike(ENGLISH, CHINESE)
        assert not tokenizer.is_alike(ENGLISH, "使用 ``open``")
        ids = tokenizer.target.encode(CHINESE)
        assert tokenizer.restored(tokenizer.target.decode(ids), ENGLISH) == CHINESE
        assert tokenizer.source.encode_all([ENGLISH]) == [tokenizer.source.encode(ENGLISH)]


def test_a_piece_with_a_sign_stands_where_its_markup_does() -> None:
    pair = train_pair_tokenizer(
        [ENGLISH], [CHINESE], TokenizerConfig(type="words", placeholders="rst")
    )
    pieces = pair.source.pieces(f"  {ENGLISH}")
    assert [piece.id for piece in pieces] == pair.source.encode(ENGLISH)
    shown = [piece.text for piece in pieces]
    assert shown[:4] == ["Use", ":func:`open`", "or", "``open()``"]
    for piece in pieces:
        assert ENGLISH[piece.start : piece.end].strip() == piece.text


def test_without_placeholders_nothing_is_held(tmp_path) -> None:
    pair = train_pair_tokenizer([ENGLISH], [CHINESE], TokenizerConfig(type="words"))
    assert pair.markup == ""
    assert pair.is_alike(ENGLISH, "使用")
    assert pair.restored("① a", ENGLISH) == "① a"


def test_markup_of_an_unknown_kind_and_of_a_text_by_itself_is_refused(tmp_path) -> None:
    settings = TokenizerConfig(type="words", placeholders="xml")
    train_pair_tokenizer(["a"], ["b"], settings).save(tmp_path)
    file = tmp_path / "pair.json"
    file.write_text(file.read_text("utf-8").replace('"xml"', '"tex"'), "utf-8")
    with pytest.raises(RunError, match=r"pair\.json holds markup of a kind .* known here: 'tex'"):
        load_pair_tokenizer(tmp_path)
    with pytest.raises(SettingError, match=r"tokenizer\.placeholders must be none where no text"):
        train_tokenizer(["a"], settings)
