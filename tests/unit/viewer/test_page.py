import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from regard.errors import SettingError
from regard.viewer import Document, Example, HeadMap, Token, page
from regard.viewer.html import bundle, modules

STATIC = Path(__file__).parents[3] / "src" / "regard" / "viewer" / "static"
HOSTILE = "</script><img src=x onerror=alert(1)>\u2028\u2029<!-- {{script}} &lt;"
MODULES = sorted(file.name for file in STATIC.rglob("*.js"))


def document(text="a"):
    token = Token(text=text, start=0, end=len(text))
    map_ = HeadMap(kind="cross", layer=0, head=0, rows=((1.0,),))
    example = Example(
        source=text, output=text, source_tokens=(token,), output_tokens=(token,), maps=(map_,)
    )
    return Document(title=text, task=text, model=text, examples=(example,))


def data_of(text):
    element = re.search(
        r'<script type="application/json" id="regard-data"[^>]*>(.*?)</script>', text
    )
    return element[1]


def test_text_cannot_leave_its_element():
    text = page(document(HOSTILE))
    assert text.count("</script>") == page(document()).count("</script>")
    assert "<img" not in text
    assert not re.search("[<>&\u2028\u2029]", data_of(text))


def test_data_in_the_page_are_the_document():
    assert json.loads(data_of(page(document(HOSTILE)))) == json.loads(document(HOSTILE).to_json())
    assert Document.from_json(data_of(page(document(HOSTILE)))) == document(HOSTILE)


def test_page_without_data_is_small():
    empty = Document(title="", task="", model="", examples=())
    assert len(page(empty).encode()) < 368_000


def test_page_holds_no_address_and_requests_nothing():
    text = page(document())
    assert not re.search(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", text)
    assert not re.search(r"\b(?:fetch|XMLHttpRequest|WebSocket|EventSource|import)\(", text)
    assert not re.search(r"url\(|@import|<link rel=.?stylesheet|<script src", text)
    assert "default-src 'none'" in text


def test_scripts_never_write_markup():
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", bundle("main.js")
    )


def test_every_module_is_in_a_page_that_needs_it():
    file, live, typing = (
        {f"{name}.js" for name in modules(f"{entry}.js")}
        for entry in ("main", "live", "model/typing")
    )
    assert len(MODULES) == len(set(MODULES))  # a script joins them by name
    assert file | live | typing == set(MODULES)
    assert file - live == {"main.js"}
    assert live - file == {"live.js"}
    assert typing - file == {file.name for file in (STATIC / "model").glob("*.js")}


@pytest.mark.parametrize("entry", ["live.js", "model/typing.js"])
def test_no_two_modules_export_one_name(entry):
    exports = [re.match(r"const \{ (.*?) \}", code)[1] for code in modules(entry).values()]
    names = [name for each in exports for name in each.split(", ") if name]
    assert len(names) == len(set(names)) > 100


def test_a_model_is_data_in_its_own_element():
    html = page(document(), model={"texts": [HOSTILE]})
    element = re.search(r'<script type="application/json" id="regard-model">(.*?)</script>', html)
    assert json.loads(element[1]) == {"texts": [HOSTILE]}
    assert not re.search("[<>&\u2028\u2029]", element[1])
    assert "regard-model" not in page(document()).replace(bundle("main.js"), "")
    assert ".typing" in html
    assert ".typing" not in page(document())


def test_a_page_with_rows_requests_one_host():
    text = page(document(), rows="http://127.0.0.1:8000/some/rows")
    assert "connect-src http://127.0.0.1:8000;" in text
    assert 'data-rows="http://127.0.0.1:8000/some/rows"' in text
    assert "connect-src" not in page(document())


@pytest.mark.parametrize(
    "rows", ["", "ftp://a/b", "http://a;b/c", 'http://a/"x', "http://a/b?c", "javascript:1"]
)
def test_a_page_requests_plain_addresses_only(rows):
    with pytest.raises(SettingError, match="rows must be an http address without a query"):
        page(document(), rows=rows)


def test_every_style_sheet_is_in_the_page():
    sheets = [file.read_text("utf-8") for file in sorted(STATIC.rglob("*.css"))]
    assert len(sheets) > 1
    rules = [re.sub(r"(?m)^\s*/\*(?s:.*?)\*/\s*?\n", "", sheet) for sheet in sheets]
    assert all(rule and rule in page(document(), model={}) for rule in rules)


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on the path")
def test_script_is_valid(tmp_path):
    file = tmp_path / "page.mjs"
    file.write_text(bundle("main.js"), encoding="utf-8")
    done = subprocess.run(["node", "--check", str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
