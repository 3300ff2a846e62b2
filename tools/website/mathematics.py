"""Hooks of the site's builder: formulas as MathML, which browsers draw without a script."""

import importlib.util
import re
import shutil
from html import unescape
from pathlib import Path

import latex2mathml.converter
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

FONT = "STIXTwoMath-Regular.ttf"
# How the Markdown extension leaves $…$ and $$…$$.
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)

# A Chinese mark must not begin a line, also where a formula stands before it.
_BEFORE_MARK = re.compile(r"</math></span>([，。；：、）？！”]+)")

# Signs as the converter leaves them, and as they should be: an operator has space around it, a
# prime is raised already, and the name of a function has no space of its own.
_SIGNS = (
    (re.compile("<mi>&#x0007E;</mi>"), "<mo>&#x0223C;</mo>"),
    (
        re.compile(r"<msup>(<mi>[^<]*</mi>)<mi>&#x02032;</mi></msup>"),
        r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>',
    ),
    (re.compile(r"<mo>(softmax|Var)</mo>"), r"<mi>\1</mi>"),
)

# Operators whose limits stand under them in a formula of its own, as those of a sum do.
_LIMITS = re.compile(r"<msub>(<mo>(?:lim|max|min|argmax)</mo><m(i|n|row)>.*?</m\2>)</msub>")
# Where a function meets a factor or its argument without a bracket, as in "2 sin x".
_NAME = r"<m[io]>(?:sin|cos|tanh|exp|log|ln|softmax|Var)</m[io]>"
_BRACKET = r"<mrow><mo[^>]*>&#x00028;"
_GAP = re.compile(
    rf"</m(?:n|i|sub|sup)>(?={_NAME})"
    rf"|(?<!<msub>){_NAME}(?=<m(?:i|n|sub|sup|row)>)(?!{_BRACKET})"
)
_SPACE = '<mspace width="0.1667em"/>'


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Formulas in TeX become MathML."""
    return with_formulas(html)


def on_post_build(config: MkDocsConfig) -> None:
    """The font for formulas is part of the site."""
    bring_font(Path(config.site_dir) / "assets")


def with_formulas(page: str) -> str:
    """HTML whose formulas in TeX are MathML."""
    return _BEFORE_MARK.sub(r"</math>\1</span>", _FORMULA.sub(_as_mathml, page))


def bring_font(folder: Path) -> None:
    """Copy the font for formulas into a folder of the site: systems often have none."""
    package = importlib.util.find_spec("ziamath")
    assert package is not None
    assert package.origin is not None
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(package.origin).parent / "fonts" / FONT, folder / FONT)


def _as_mathml(formula: re.Match[str]) -> str:
    tag, bracket, tex = formula.groups()
    display = "block" if bracket == "[" else "inline"
    mathml = latex2mathml.converter.convert(unescape(tex).strip(), display=display)
    if display == "block":
        mathml = _LIMITS.sub(r"<munder>\1</munder>", mathml)
    for sign, right in _SIGNS:
        mathml = sign.sub(right, mathml)
    mathml = _GAP.sub(rf"\g<0>{_SPACE}", mathml)
    return f'<{tag} class="formula">{mathml}</{tag}>'
