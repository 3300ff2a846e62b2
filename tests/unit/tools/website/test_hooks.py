"""The search of the site cuts queries into whole words."""

from pathlib import Path

import material
import pytest
from tools.website.hooks import whole_words

SCRIPTS = Path(material.__file__).parent / "templates" / "assets" / "javascripts" / "workers"


def test_words_of_a_query_may_end_with_its_last_character():
    [script] = SCRIPTS.glob("search.*.min.js")
    before = script.read_text("utf-8")
    after = whole_words(before)
    # 对齐 was looked for as 对: "slice(s,o)" never reached the end.
    assert "for(let o=s+1;o<t.length;o++)t.slice(s,o)in e" in before
    assert "for(let o=s+1;o<=t.length;o++)t.slice(s,o)in e" in after
    assert "n[a]&&(i[s++]=a)" in after
    assert whole_words(after) == after  # built once for each language


def test_a_script_that_cuts_in_another_way_is_named():
    with pytest.raises(ValueError, match="the theme cuts queries in another way"):
        whole_words("function cut(query) {}")
