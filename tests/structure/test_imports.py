"""Nothing is imported before it is needed, and nothing is unpickled."""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def unpickling(tree):
    """Modules that a file imports, or calls of torch and NumPy, that may run what they read."""
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names} & UNPICKLING
        elif isinstance(node, ast.ImportFrom):
            modules |= {str(node.module).split(".")[0]} & UNPICKLING
        elif isinstance(node, ast.Call):
            modules |= {ast.unparse(node.func)} & {"torch.load", "np.load"}
    return modules


UNPICKLING = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}


def test_nothing_is_unpickled():
    words = re.compile("|".join([*UNPICKLING, r"torch\.load", r"np\.load"]))
    for file in sorted((ROOT / "src").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        assert not (words.search(text) and unpickling(ast.parse(text))), file
    bad = "import pickle\nfrom marshal import loads\nx = torch.load(y)\n"
    assert unpickling(ast.parse(bad)) == {"pickle", "marshal", "torch.load"}


def imported_modules(tree, modules):
    """The modules that a file imports anywhere in it, other than to name types."""
    imported, nodes = set(), [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            imported |= names & modules or {node.module} & modules
        nodes += ast.iter_child_nodes(node)
    return imported


def test_no_modules_import_each_other():
    source = ROOT / "src"
    files = [file for file in source.rglob("*.py") if file.stem != "__init__"]
    names = {".".join(file.relative_to(source).with_suffix("").parts): file for file in files}
    graph = {
        name: imported_modules(ast.parse(file.read_text("utf-8")), names.keys())
        for name, file in names.items()
    }
    assert len(list(TopologicalSorter(graph).static_order())) == len(names)  # or a CycleError
    graph["regard.errors"].add("regard.training.start")
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()


PEERS = ["transformers", "matplotlib", "fastapi", "numba"]
# Rooms in the order of their imports, and what is still not loaded after each.
UNWANTED = {
    "regard": ["torch", "numpy", "rich", "sentencepiece"],
    "regard.attention": ["sentencepiece", "sacrebleu", "rich", "cyclopts", "tensorboard", *PEERS],
    "regard.models": ["sentencepiece", "sacrebleu", "rich", "cyclopts", "tensorboard"],
    "regard.training": ["cyclopts", "tensorboard", "regard.text.phrasebook", *PEERS],
}


def test_importing_a_room_leaves_out_what_it_does_not_need():
    code = (
        "import sys, importlib\n"
        f"for room, unwanted in {UNWANTED!r}.items():\n"
        "    importlib.import_module(room)\n"
        "    print(room, *(name for name in unwanted if name in sys.modules))\n"
        "regard = sys.modules['regard']\nassert regard.training.Callback\n"
        f"assert not set({PEERS!r}) & sys.modules.keys()\n"
    )
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == list(UNWANTED)


# Command lines that need no model, and what each says.
WITHOUT_TORCH = {
    "settings": "[data]",
    "train transformer-tiny a.en a.de --set model.num_head=3": "Did you mean model.num_heads?",
    "train tagging-words a.conll --set head.labels=x": "head.labels is not a setting.",
    "train --help": "classification-convolution",
}


def test_commands_without_a_model_do_not_load_torch():
    code = (
        "import sys; from regard.cli.app import run_command\n"
        f"for line in {list(WITHOUT_TORCH)!r}:\n"
        "    run_command(line.split())\n"
        "    assert 'torch' not in sys.modules, line\n"
    )
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert all(message in done.stdout + done.stderr for message in WITHOUT_TORCH.values())
