"""Notebooks are files that Jupyter opens, with the text of their pages."""

import json

from tools.notebooks import cells, notebook, pages, write


def test_blocks_become_cells_and_what_they_print_their_outputs():
    page = "# T\n\n[中文](t.zh.md)\n\nSee [this](a.md#b).\n\n```python\nx = 1\nprint(x)\n```\n\n"
    page += "```text\n1\n```\n\n```console\n$ regard look a\n...\n$ regard demo\n```\n\n"
    page += "```toml\n# r.toml\nx = 1\n```\n"
    written = json.loads(notebook(page))
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in written["cells"]] == [
        ("markdown", "# T\n\nSee [this](a.html#b)."),
        ("code", "x = 1\nprint(x)"),
        ("code", "!regard look a"),
        ("code", "!regard demo"),
        ("code", "%%writefile r.toml\n# r.toml\nx = 1"),
    ]
    assert [cell.get("outputs") for cell in written["cells"]] == [
        None,
        [{"output_type": "stream", "name": "stdout", "text": ["1"]}],
        [{"output_type": "stream", "name": "stdout", "text": ["..."]}],
        [],
        [],
    ]
    assert (written["nbformat"], written["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in written["cells"]}) == len(written["cells"])


def test_no_code_of_a_tutorial_is_lost(tmp_path):
    written = write(pages(), tmp_path)
    assert len(written) == 28
    for page in pages():
        text = page.read_text("utf-8")
        code = [cell.source for cell in cells(text) if cell.is_code]
        assert code
        for source in code:
            first = source.removeprefix("!").removeprefix("%%writefile ").splitlines()[0]
            assert first in text
