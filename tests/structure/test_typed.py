"""Nothing typed: numbers in tables, printed blocks, pictures and figures come from commands.

What it can see: fractions and percentages in tables, numbers in blocks that show what is printed,
files of pictures, and numbers of a figure that stand in its source as they are. Blocks that another
test compares count as made.
"""

import ast
import inspect
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tools import demo_pictures, notebooks, samples  # noqa: E402  (packages of the repository)
from tools.figures.__main__ import EXAMPLES, FOLDER, examples  # noqa: E402
from tools.figures.drawing import PICTURES  # noqa: E402

DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("README*.md")), *sorted(DOCS.rglob("*.md"))]
# Pages whose blocks or tables a test compares with what programs say, and that test.
COMPARED = {
    **{page.name: "tests/end_to_end/test_tutorials.py" for page in notebooks.pages()},
    **dict.fromkeys(("auditing.md", "auditing.zh.md"), "tests/unit/docs/test_auditing.py"),
    **dict.fromkeys(("formats.md", "formats.zh.md"), "tests/unit/docs/test_formats.py"),
    **{page.name: "tests/unit/docs/test_how_to.py" for page in DOCS.glob("how-to/*.md")},
    **dict.fromkeys(("pretrained.md", "pretrained.zh.md"), "tests/structure/test_typed.py"),
    **dict.fromkeys(("seeds.md", "seeds.zh.md"), "tests/unit/examples/test_experiments.py"),
    "phrasebook.md": "tests/property/test_phrasebook.py",
    "measured.md": "tests/structure/test_figures.py",
}
FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
MADE = re.compile(r"<!-- made: ([\w-]+) -->\n\Z")
PRINTED = ("", "text", "console", "json")
FRACTION = re.compile(r"(?<![\w.])-?\d*\.\d+(?:e-?\d+)?(?![\w.])|\d\s?%|±\s?\d|\de-\d")


def without_made(text):
    """A page without what commands wrote between two marks."""
    return re.sub(r"<!-- record: .*?<!-- end -->", "", text, flags=re.DOTALL)


def typed_rows(text):
    """Rows of tables with fractions or percentages, but in code, links, and names of versions."""
    body = re.sub(r"^```.*?^```", "", without_made(text), flags=re.DOTALL | re.MULTILINE)
    rows = [line for line in body.splitlines() if line.startswith("|")]
    words = [re.sub(r"`[^`]*`|\[[^\]]*\]\([^)]*\)|HTTP/1\.1|\$[^$]*\$", "", row) for row in rows]
    return [row for row, each in zip(rows, words, strict=True) if FRACTION.search(each)]


def printed_blocks(text):
    """Each block of what is printed, the name of what made it, and whether code stands above it."""
    end, language = 0, ""
    for block in FENCED.finditer(text):
        between, is_below_code = text[end : block.start()], language == "python"
        if block[1] in PRINTED:
            made = MADE.search(between)
            yield block[2], made and made[1], is_below_code and not between.strip()
        end, language = block.end(), block[1]


def typed_blocks(text):
    """Printed blocks with numbers that neither a command wrote nor a test compares."""
    return [
        block
        for block, made, is_below_code in printed_blocks(text)
        if re.search(r"\d", block)
        and not (made or is_below_code or block.startswith(f"{demo_pictures.SENTENCE} → "))
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_number_of_a_table_or_a_printed_block_is_typed(page):
    if page.name not in COMPARED:
        text = page.read_text("utf-8")
        assert typed_rows(text) == []
        assert typed_blocks(text) == []


def test_typed_numbers_would_be_found():
    assert typed_rows("| loss | 1.83 |\n| right | 97 % |\n| `0.1` | 3 |\n") == [
        "| loss | 1.83 |",
        "| right | 97 % |",
    ]
    assert typed_blocks("It says:\n\n```text\nloss 1.83\n```\n") == ["loss 1.83\n"]
    assert typed_blocks("It says:\n\n<!-- made: a -->\n```text\nloss 1.83\n```\n") == []
    assert typed_blocks("So:\n\n```python\nprint(3)\n```\n\n```text\n3\n```\n") == []


def test_each_test_that_compares_a_page_is_there():
    for page, test in COMPARED.items():
        assert (ROOT / test).exists(), page


def test_blocks_are_what_their_commands_printed():
    stored = json.loads(samples.STORED.read_text("utf-8"))
    assert stored.keys() == samples.SAMPLES.keys()
    named = set()
    for page in PAGES:
        for block, made, _ in printed_blocks(page.read_text("utf-8")):
            if made:
                assert block == stored[made], page
                named.add(made)
    assert named == stored.keys()


def test_every_picture_is_drawn_by_a_command():
    course = {FOLDER / f"{name}{ending}.svg" for name in PICTURES for ending in ("", ".zh")}
    written = {demo_pictures.DEMO, demo_pictures.INSPECTOR, demo_pictures.WEIGHTS, samples.STORED}
    # By tools.figures, benchmarks.heads and examples/experiments/seeds.py.
    written |= {FOLDER / name for name in ("data.json", EXAMPLES, "reader.json", "seeds.json")}
    assert {path for path in (DOCS / "figures").rglob("*") if path.is_file()} == course | written


def test_interactive_parts_begin_with_what_the_figures_compute():
    stored = json.loads((FOLDER / EXAMPLES).read_text("utf-8"))
    assert stored == json.loads(json.dumps(examples()))


@pytest.mark.parametrize("name", [name for name, each in PICTURES.items() if not each.is_learned])
def test_the_numbers_that_a_figure_shows_do_not_stand_in_its_source(name):
    source = inspect.getsource(inspect.getmodule(PICTURES[name].draw))
    for array, values in PICTURES[name].data().items():
        assert not is_typed(np.ravel(values), source), array


def is_typed(values, source):
    """Whether each of three fractions or more stands in a list or a tuple of a module."""
    fractions = {round(float(x), 4) for x in values if round(float(x), 1) != float(x)}
    tables = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.List | ast.Tuple)
    ]
    there = [each.value for node in tables for each in node.elts if isinstance(each, ast.Constant)]
    return len(fractions) >= 3 and fractions <= {x for x in there if isinstance(x, float)}


def test_typed_numbers_of_a_figure_would_be_found():
    source = "WEIGHTS = [[0.75, 0.23], [0.02, 0.99]]\nRATES = (0.05, 0.005)"
    assert is_typed([0.75, 0.23, 0.02, 0.99], source)
    assert not is_typed([0.75, 0.23, 0.05, 0.981], source)


@pytest.mark.parametrize("ending", ["", ".zh"])
def test_settings_that_a_page_lists_are_those_of_the_code(ending):
    from regard.training import TrainingConfig
    from regard.training.fine_tuning import fine_tuning

    small, middle, large = (fine_tuning("classification", width) for width in (256, 384, 768))
    text = (DOCS / f"pretrained{ending}.md").read_text("utf-8")
    rows = typed_rows(text)
    assert len(rows) == 2
    numbers = [[float(x) for x in re.findall(r"\d+(?:\.\d+)?(?:e-\d+)?", row)] for row in rows]
    training, wide = small["training"], middle["training"]
    assert numbers[0] == [
        *(256, training["learning_rate"], training["warmup"], small["model"]["dropout"]),
        *(
            small["head"]["dropout"],
            TrainingConfig(updates=1).label_smoothing,
            training["weight_decay"],
        ),
    ]
    rates = [middle["training"]["learning_rate"], large["training"]["learning_rate"]]
    by_width = sorted([(384, rates[0]), (768, rates[1])])
    assert numbers[1][0] == pytest.approx(rates[0] * 384)
    assert {*numbers[1][1:5]} == {value for pair in by_width for value in pair}
    assert numbers[1][5:] == [middle["head"]["dropout"], wide["weight_decay"]]
    assert (wide["warmup_share"], wide["label_smoothing"]) == (0.1, 0.0)
