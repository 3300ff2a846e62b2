"""Formulas of pages become MathML, with a font beside them."""

from tools.website.mathematics import FONT, bring_font, with_formulas


def test_formulas_in_a_line_and_of_their_own_become_mathml() -> None:
    page = with_formulas(
        r'<p>A <span class="arithmatex">\(x_i &lt; 1\)</span></p>'
        '<div class="arithmatex">\\[\n\\sum_{i=1}^n y_i\n\\]</div>'
    )
    assert page.startswith('<p>A <span class="formula"><math')
    assert "<msub><mi>x</mi><mi>i</mi></msub><mo>&#x0003C;</mo>" in page
    assert '<div class="formula"><math' in page
    assert 'display="block"' in page
    assert "arithmatex" not in page
    assert "sum" not in page


def test_a_page_without_formulas_stays_as_it_is() -> None:
    assert with_formulas("<p>$ regard demo</p>") == "<p>$ regard demo</p>"


def test_the_font_lies_where_the_style_sheet_looks(tmp_path) -> None:
    bring_font(tmp_path / "assets")
    assert (tmp_path / "assets" / FONT).stat().st_size > 100_000
