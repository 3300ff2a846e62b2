"""Formulas of pages become MathML, with a font."""

import re

from tools.notebooks import pages
from tools.website.mathematics import FONT, bring_font, with_formulas
from tools.website.pages import without_code

_FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<!\$)\$([^$\n]+)\$(?!\$)", re.DOTALL)


def test_formulas_in_a_line_and_of_their_own_become_mathml():
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


def test_limits_stand_below_and_functions_apart():
    limits = with_formulas(r'<div class="arithmatex">\[\lim_{n\to\infty} \max_i v_i\]</div>')
    assert limits.count("<munder><mo>") == 2
    inline = with_formulas(r'<span class="arithmatex">\(\max_i v_i\)</span>')
    assert "<msub><mo>max</mo>" in inline
    page = with_formulas(r'<span class="arithmatex">\(2\sin x + \exp(x)\)</span>')
    space = '<mspace width="0.1667em"/>'
    assert f"<mn>2</mn>{space}<mi>sin</mi>{space}<mi>x</mi>" in page
    assert "<mi>exp</mi><mo" in page


def test_signs_are_operators_and_names_have_no_space_before_a_bracket():
    page = with_formulas(r"""<span class="arithmatex">\(c_{t'} \sim N\)</span>""")
    assert '<mrow><mi>t</mi><mo lspace="0" rspace="0">&#x02032;</mo></mrow>' in page
    assert "<mo>&#x0223C;</mo>" in page
    page = with_formulas(
        r'<span class="arithmatex">\(\operatorname{softmax}_i\left(x\right)\)</span>'
    )
    assert "<msub><mi>softmax</mi><mi>i</mi></msub><mrow><mo" in page


def test_no_formula_of_a_page_keeps_what_is_not_understood():
    for page in pages():
        for formula in _FORMULA.finditer(without_code(page.read_text("utf-8"))):
            tex = formula[1] or formula[2]
            drawn = with_formulas(f'<span class="arithmatex">\\({tex}\\)</span>')
            assert "\\" not in re.sub(r'="[^"]*"', "", drawn), (page.name, tex)


def test_a_chinese_mark_does_not_begin_a_line_behind_a_formula():
    page = with_formulas(r'<span class="arithmatex">\(x\)</span>，<b>')
    assert page.endswith("</math>，</span><b>")


def test_a_page_without_formulas_stays_as_it_is():
    assert with_formulas("<p>$ regard demo</p>") == "<p>$ regard demo</p>"


def test_the_font_lies_where_the_style_sheet_looks(tmp_path):
    bring_font(tmp_path / "assets")
    assert (tmp_path / "assets" / FONT).stat().st_size > 100_000
