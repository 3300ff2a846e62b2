"""Every block of Python on a page runs in a process of its own, in a folder with what it names."""

import ast
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.end_to_end.fresh_python import process
from tests.end_to_end.pages import ROOT, blocks, save_photos
from tests.unit.export.random_runs import classifier, translator
from tests.unit.interop.tiny_folders import save_bert

import regard

pytestmark = pytest.mark.slow

# A tutorial is one program: test_tutorials.py runs each from top to bottom.
PAGES = [*ROOT.glob("README*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("how-to/*")]
# Quicker than what a page says, and the same code.
SHORT = {
    "training.updates": 2,
    "training.validation_pairs": 4,
    "tokenizer.vocab_size": 950,
    "decoding.max_ratio": 0.1,
}
QUICKER = {
    '"reviews.csv", ': '"reviews.csv", settings={"training.updates": 2}, run=',
    'data="pairs.tsv"': f'data="pairs.tsv", settings={SHORT}',
    "engine=ray_engine(actors=8),": "",  # tests/unit/inference/bulk/test_on_ray.py starts Ray
}


def different_blocks():
    """The different blocks of all pages; one that a page of the other language repeats is one."""
    blocks_of_pages: dict[str, str] = {}
    trees: set[str] = set()
    for page in sorted(PAGES):
        for number, code in enumerate(blocks(page, "python"), 1):
            if (tree := ast.dump(ast.parse(code))) not in trees:
                trees.add(tree)
                blocks_of_pages[f"{page.relative_to(ROOT)} {number}"] = code
    return blocks_of_pages


BLOCKS = different_blocks()
# What pages say that their programs print: the block right below one.
OUTPUTS = {
    ast.dump(ast.parse(code)): output
    for page in PAGES
    for code, output in re.findall(
        r"^```python\n((?:(?!```)[^\n]*\n)+)```\n\n```text\n((?:(?!```)[^\n]*\n)+)```",
        page.read_text("utf-8"),
        re.MULTILINE,
    )
}
# A script with arguments: tests/unit/export/test_programs.py runs them as such.
SCRIPTS = [name for name, code in BLOCKS.items() if "sys.argv" in code]


def exported(form, make):
    def export(folder):
        run = folder.with_name("exported")
        make(run)
        with process() as python:  # whose functions have no shape checks, which torch cannot export
            code = f"from regard.export import export_run; export_run({str(run)!r}, {form!r}, OUT)"
            python.run(code.replace("OUT", repr(str(folder))), "export")

    return export


def shards(folder):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder.mkdir()
    parquet.write_table(arrow.table({"source": ["我爱中国", "他爱你"]}), folder / "a.parquet")


def photos_run(folder):
    photos = folder.parents[1] / "photos"
    save_photos(photos)
    regard.train(photos, folder, settings={"training.updates": 2})


# What a block names, and how it is made.
MADE: dict[str, Callable[[Path], object]] = {
    "bert": lambda folder: save_bert(folder, "BertForMaskedLM"),
    "my-run-hf": exported("huggingface", translator),
    "sst2": exported("torch", classifier),
    "shards": shards,
    "runs/photos": photos_run,
    "runs/seed-1": translator,
    "runs/seed-2": translator,
}


@pytest.mark.parametrize("name", [name for name in BLOCKS if name not in SCRIPTS])
def test_a_block_runs_by_itself(name, corpus, run, tmp_path, monkeypatch):
    code = BLOCKS[name]
    output = OUTPUTS.get(ast.dump(ast.parse(code)))
    shutil.copytree(run, tmp_path / "runs" / "ende")
    if output is None:  # what is printed is the shipped translator's own
        shutil.copytree(run, tmp_path / "tatoeba-zh-en")
    pairs = (corpus / "train.tsv").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "pairs.tsv").write_text("".join(random.Random(0).sample(pairs, 60)), "utf-8")
    rows = [f"The room was {n} steps away,{('good', 'bad')[n % 2]}" for n in range(60)]
    (tmp_path / "reviews.csv").write_text("\n".join(["review,label", *rows]) + "\n", "utf-8")
    for named, make in MADE.items():
        if re.search(rf'"{named}[/"]', code):
            make(tmp_path / named)
    monkeypatch.chdir(tmp_path)
    for slow, quick in QUICKER.items():
        code = code.replace(slow, quick)
    with process() as python:
        printed = python.run(code, name)
    assert output is None or printed == output


def test_blocks_are_found():
    assert len(SCRIPTS) == 2
    assert len(OUTPUTS) == 5
    assert {name.split()[0] for name in BLOCKS} >= {"README.md", "docs/watching.md"}
